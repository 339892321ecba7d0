// `namegate up` whose daemon was killed continues with what it had learned. Learned addresses stay allowed all the time, and no other
// address passes. The state is of one workload: another one begins without it. An ordinary end leaves nothing.

import assert from 'node:assert/strict'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { after, afterEach, before, describe, it } from 'node:test'
import { canUseNamegate } from '../../support/labs/lab-namegate.ts'
import { DNS_4 } from '../../support/labs/lab-pod.ts'
import { ALLOWED, OTHER, UpLab, type UpRun } from '../../support/labs/up-lab.ts'
import { Probe } from '../../support/peers/traffic.ts'

const LIMIT_MS = 90_000
const PORT = 80
const LEARNED = '198.18.40.1'
const DENIED = '198.18.40.2'
const STUB = '127.0.0.53'

describe('namegate up after a kill', { skip: canUseNamegate() ?? false }, () => {
  let lab: UpLab
  const runs: UpRun[] = []

  function up(...args: readonly [string, ...string[]]): UpRun {
    const run = lab.up(...args)
    runs.push(run)
    return run
  }

  async function daemonOf(run: UpRun): Promise<number> {
    const { stdout } = await run.command('/', 'status', '-o', 'json')
    return Number(/"pid": (\d+)/.exec(stdout)?.[1])
  }

  async function kill(run: UpRun): Promise<void> {
    process.kill(await daemonOf(run), 'SIGKILL')
    assert.equal((await run.process.ended(LIMIT_MS))?.code, 3)
  }

  /** The known names and their addresses, such as `www.shop.test 198.18.40.1`. */
  async function names(run: UpRun): Promise<readonly string[]> {
    const { stdout } = await run.command('/', 'get', 'names', '-o', 'json')
    const rows = JSON.parse(stdout) as { name: string; addresses: { address: string }[] }[]
    return rows.flatMap(({ name, addresses }) => addresses.map((each) => `${name} ${each.address}`))
  }

  before(async () => {
    lab = new UpLab(2)
    await lab.serve()
  })
  after(async () => await lab.close())
  afterEach(async () => await Promise.all(runs.splice(0).map(async (run) => await run.end())))

  it('leaves nothing if its daemon is killed while it ends', async () => {
    const { host } = lab.pod(0)
    const args = ['--netns', host.namespace, '--upstream', DNS_4, '--allow', ALLOWED]
    const run = up(DNS_4, ...args)
    await run.protects()
    const daemon = await daemonOf(run)
    run.process.kill('SIGINT')
    await setTimeout(100)
    process.kill(daemon, 'SIGKILL')
    assert.equal((await run.process.ended(LIMIT_MS))?.code, 0)
    assert.deepEqual(lab.pins, [])
    const again = up(DNS_4, ...args)
    await again.protects()
    assert.equal(await lab.fetch(host, ALLOWED), '200')
    assert.equal(await lab.fetch(host, OTHER, 1), '000', 'it enforces again')
  })

  for (const [pod, resolver, why] of [
    [0, DNS_4, 'on this host, with eBPF'],
    [1, STUB, 'inside the namespace, with nftables'],
  ] as const) {
    it(`knows the names from before, and loses no connection: ${why}`, async () => {
      const { host } = lab.pod(pod)
      const args = ['--netns', host.namespace, '--upstream', DNS_4, '--allow', ALLOWED]
      const state = join(lab.shared, `up-${host.namespace}/state`)
      const run = up(resolver, ...args)
      await run.protects()
      assert.equal(await lab.fetch(host, ALLOWED), '200')
      assert.deepEqual(await names(run), [`${ALLOWED} ${LEARNED}`])
      const allowed = await Probe.begin(host, 20, LEARNED, PORT)
      const denied = await Probe.begin(host, 20, DENIED, PORT)
      await allowed.untilConnected(PORT, 0)
      await kill(run)
      assert.ok(existsSync(state), 'the state of the killed run')
      const again = up(resolver, ...args)
      await again.protects()
      assert.deepEqual(await names(again), [`${ALLOWED} ${LEARNED}`])
      await allowed.untilConnected(PORT, Date.now())
      await Promise.all([allowed.stop(), denied.stop()])
      const lost = allowed.attempts(PORT).filter(({ connected }) => !connected)
      const through = denied.attempts(PORT).filter(({ connected }) => connected)
      assert.deepEqual([lost, through], [[], []])
      assert.ok(denied.attempts(PORT).length > 0)
      assert.equal((await again.end())?.code, 0)
      assert.deepEqual(readdirSync(lab.shared), [], 'an ordinary end leaves nothing')

      const fresh = up(resolver, ...args)
      await fresh.protects()
      assert.deepEqual(await names(fresh), [], 'an ordinary end forgets')
      await fresh.end()
    })
  }

  it('takes a changed command line: names that it no longer allows do not come back, and it decides about audit', async () => {
    const { host } = lab.pod(0)
    const both = ['--netns', host.namespace, '--allow', ALLOWED, '--allow', OTHER]
    const run = up(DNS_4, ...both)
    await run.protects()
    for (const name of [ALLOWED, OTHER]) assert.equal(await lab.fetch(host, name), '200')
    assert.equal((await run.command('/', 'audit', 'on', '--node')).code, 0)
    assert.equal(await lab.fetch(host, '198.18.40.9'), '200', 'audited')
    await kill(run)
    const again = up(DNS_4, '--netns', host.namespace, '--allow', ALLOWED)
    assert.match(await again.protects(), /is protected/)
    assert.match(again.process.stderr, /the audit settings of the run before are not kept/)
    assert.equal(await lab.fetch(host, LEARNED), '200')
    for (const address of [DENIED, '198.18.40.9']) {
      assert.equal(await lab.fetch(host, address, 1), '000', address)
    }
    assert.equal((await again.end())?.code, 0)
    assert.deepEqual(readdirSync(lab.shared), [])
  })

  it('begins anew in a namespace that was made again under the same name', async () => {
    const { host } = lab.pod(1)
    const args = ['--netns', host.namespace, '--upstream', DNS_4, '--allow', ALLOWED]
    const run = up(STUB, ...args)
    await run.protects()
    assert.equal(await lab.fetch(host, ALLOWED), '200')
    await kill(run)
    // The rules of a namespace end with it. To remove them is what the workload sees of that.
    for (const table of ['namegate', 'namegate_intercept']) {
      await host.run('nft', ['delete', 'table', 'inet', table])
    }
    const again = up(STUB, ...args)
    await again.protects()
    assert.deepEqual(await names(again), [])
    await again.end()
  })
})
