// TPROXY under the eBPF programs, which run before the rules. The daemon adds the rules when it starts, and the programs let DNS pass only
// while the rules exist.

import assert from 'node:assert/strict'
import { tproxySuite } from '../../support/labs/tproxy-suite.ts'

tproxySuite({
  title: 'tproxy under eBPF',
  fenced: true,
  config: 'intercept: { on-start: true }',
  install: async () => await Promise.resolve(),
  remove: async (namegate) => {
    const { code, stdout, stderr } = await namegate.run('intercept', 'down')
    assert.deepEqual([code, stdout, stderr], [0, 'not intercepted any more\n', ''])
  },
})
