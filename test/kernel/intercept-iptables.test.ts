// The text of `intercept show --iptables`, loaded by iptables-restore and ip6tables-restore, does what namegate's own
// rules do; its comments are the routing to make and the commands that remove it all.

import assert from 'node:assert/strict'
import { outputIn, runIn, snapshot } from '../support/intercept-lab.ts'
import type { Host } from '../support/lab.ts'
import { tproxySuite } from '../support/tproxy-suite.ts'

const RESTORE = ['iptables-restore', 'ip6tables-restore']
let text = ''
let before: readonly string[] = []

tproxySuite({
  title: 'tproxy by the printed iptables text',
  fenced: false,
  config: '',
  install: async (namegate, node) => {
    before = snapshot(node)
    const { code, stdout, stderr } = await namegate.run('intercept', 'show', '--iptables')
    assert.equal(code, 0, stderr)
    text = stdout
    for (const tool of RESTORE) {
      const loaded = runIn(node, [tool, '--noflush'], text)
      assert.equal(loaded.code, 0, loaded.stderr)
    }
    for (const [, command = ''] of text.matchAll(/^# (ip .*)$/gm)) outputIn(node, ...words(command))
  },
  remove: async (_namegate, node) => {
    for (const [, line = ''] of text.matchAll(/^# {3}(ip.*)$/gm)) removeBy(node, line)
    const left = snapshot(node).filter(
      (each) => !before.includes(each) && /NAMEGATE|4e47/.test(each),
    )
    await Promise.resolve(assert.deepEqual(left, []))
  },
})

function removeBy(node: Host, line: string): void {
  for (const command of line.split('; ')) {
    outputIn(node, ...words(command))
    if (command.startsWith('iptables'))
      outputIn(node, ...words(command.replace('iptables', 'ip6tables')))
  }
}

function words(command: string): readonly string[] {
  return command.split(' ')
}
