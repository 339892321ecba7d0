// `namegate intercept down` in a network namespace without rules of namegate.

import assert from 'node:assert/strict'
import { resolve } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { canUseNamegate } from '../../support/labs/lab-namegate.ts'
import { podLab, type PodLab } from '../../support/labs/lab-pod.ts'

describe('namegate intercept down', { skip: canUseNamegate() ?? false }, () => {
  let lab: PodLab

  before(() => void (lab = podLab({ pods: 0 })))
  after(async () => await lab.close())

  it('lists where it looked, and ends with 1 when it finds nothing', async () => {
    const namespace = (await lab.node.run('readlink', ['/proc/self/ns/net'])).stdout.trim()
    const { code, stdout, stderr } = await lab.node.run(resolve('bin/namegate'), [
      'intercept',
      'down',
    ])
    assert.deepEqual([code, stderr], [1, ''])
    assert.match(stdout, /^nothing was intercepted: /)
    assert.ok(stdout.includes(namespace), stdout)
    assert.match(stdout, /namegate_intercept.*nsenter --net=/)
  })
})
