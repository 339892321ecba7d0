// TPROXY by the printed iptables text, loaded by iptables-restore and ip6tables-restore. It works as namegate's own rules do, and the
// commands in its comments remove it completely.

import assert from 'node:assert/strict'
import { snapshot } from '../../support/labs/intercept-lab.ts'
import { loadText, unloadText } from '../../support/labs/iptables.ts'
import { tproxySuite } from '../../support/labs/tproxy-suite.ts'

let text = ''
let before: readonly string[] = []

tproxySuite({
  title: 'tproxy by the printed iptables text',
  fenced: false,
  config: '',
  install: async (namegate, node) => {
    before = snapshot(node)
    text = await loadText(namegate, node)
  },
  remove: async (_namegate, node) => {
    unloadText(text, node)
    const left = snapshot(node).filter((line) => !before.includes(line))
    assert.deepEqual(
      left.filter((line) => /NAMEGATE|4e47|lookup|local default/.test(line)),
      [],
    )
    await Promise.resolve()
  },
})
