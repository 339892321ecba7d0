// One daemon owns the interception of a network namespace. A second daemon with its own pins, socket and state does not start, names the
// first, and changes nothing. The first daemon replaces rules of another configuration as soon as it sees them.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { outputIn } from '../../support/labs/intercept-lab.ts'
import { podLab, type PodLab } from '../../support/labs/lab-pod.ts'
import { canUseNamegate, Namegate } from '../../support/labs/lab-namegate.ts'
import { until } from '../../support/peers/client.ts'

const ENDPOINT = '{ name: pod1, addresses: [10.20.1.2], labels: { app: a }, interface: lxc1 }'
const BACK_MS = 10_000

describe('interception that a daemon owns', { skip: canUseNamegate() ?? false }, () => {
  let lab: PodLab
  let first: Namegate
  let second: Namegate

  before(async () => {
    lab = podLab()
    await lab.startNameServer({ names: { 'www.shop.test': ['198.18.40.1'] } })
    const mk = (port: number): Namegate =>
      new Namegate(lab, {
        policies: {},
        endpoints: [ENDPOINT],
        listenerItems: [`{ port: ${port}, mode: tproxy }`],
        config: 'intercept: { on-start: true }',
      })
    first = mk(10053)
    second = mk(10054)
    await first.start()
  })

  after(async () => {
    await second.close()
    await first.close()
    await lab.close()
  })

  const rules = (): string =>
    outputIn(lab.node, 'nft', 'list', 'table', 'inet', 'namegate_intercept')
  const programs = (): string =>
    outputIn(lab.node, 'tc', 'filter', 'show', 'dev', 'lxc1', 'ingress')

  async function untilBack(): Promise<void> {
    const deadline = performance.now() + BACK_MS
    while (!rules().includes('tproxy ip to :10053')) {
      assert.ok(performance.now() < deadline, 'the rules of the first daemon are not back')
      await sleep(50)
    }
  }

  it('keeps a second daemon from starting, with an error that names the first', async () => {
    const before = programs()
    const { code, stdout, stderr } = await second.run('run')
    assert.equal(code, 3, stdout)
    const owner = `the namegate with pid ${first.pid} (config ${first.configFile})`
    assert.ok(
      stderr.includes(`interception in this network namespace is in use by ${owner}`),
      stderr,
    )
    assert.match(stderr, /: stop it, or give this one listeners of mode explicit/)
    assert.match(rules(), /tproxy ip to :10053/)
    assert.equal(programs(), before)
  })

  it('restores its own rules when a command added those of another configuration', async () => {
    const { code, stderr } = await second.run('intercept', 'up')
    assert.equal(code, 0, stderr)
    await untilBack()
    await first.daemon.untilOutput(/of another configuration: plan .*/)
    assert.equal((await first.status())['ready'], true)
  })

  it('is not ready while the rules are of another configuration and on-start is not set', async () => {
    await first.daemon.stop()
    first.writeConfig({
      policies: {},
      endpoints: [ENDPOINT],
      listenerItems: ['{ port: 10053, mode: tproxy }'],
    })
    await second.run('intercept', 'up')
    first.launch('bin/namegate')
    await first.daemon.untilOutput(/namegate serves/)
    const ready = await first.run('status', '--ready')
    assert.equal(ready.code, 1, ready.stdout)
    assert.match(`${ready.stdout}${ready.stderr}`, /interception: rules of another configuration/)
    assert.equal((await first.run('intercept', 'up')).code, 0)
    const isReady = async (): Promise<boolean> => (await first.status())['ready'] === true
    await until('ready with its own rules', isReady, BACK_MS, 20)
  })
})
