// REDIRECT by namegate's own rules.

import assert from 'node:assert/strict'
import type { Namegate } from '../../support/labs/lab-namegate.ts'
import { redirectSuite } from '../../support/labs/redirect-suite.ts'

redirectSuite({
  title: 'redirect in a pod',
  install: async (namegate) => await change(namegate, 'up'),
  remove: async (namegate) => await change(namegate, 'down'),
})

async function change(namegate: Namegate, verb: string): Promise<void> {
  const { code, stderr } = await namegate.run('intercept', verb)
  assert.deepEqual([code, stderr], [0, ''])
}
