// TPROXY by the rules of `namegate intercept up` alone: no program fences the pod.

import assert from 'node:assert/strict'
import type { Namegate } from '../../support/labs/lab-namegate.ts'
import { tproxySuite } from '../../support/labs/tproxy-suite.ts'

tproxySuite({
  title: 'tproxy by rules alone',
  fenced: false,
  config: '',
  install: async (namegate) => await change(namegate, 'up'),
  remove: async (namegate) => await change(namegate, 'down'),
})

async function change(namegate: Namegate, verb: string): Promise<void> {
  const { code, stderr } = await namegate.run('intercept', verb)
  assert.deepEqual([code, stderr], [0, ''])
}
