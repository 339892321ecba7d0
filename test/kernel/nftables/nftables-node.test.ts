// A node with the nftables datapath and the real daemon and commands. Asked names are reachable at once, a revoked flow is cut while it
// runs, enforcement outlives the daemon, and the mode can be set while the daemon hangs.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { podLab, type PodLab } from '../../support/labs/lab-pod.ts'
import { Namegate } from '../../support/labs/lab-namegate.ts'
import { until } from '../../support/peers/client.ts'
import { startEcho, Talk } from '../../support/peers/traffic.ts'
import { nftablesMaker } from '../../contract/nftables-bench.ts'
import { canUseLab } from '../../support/labs/lab.ts'

const skip = canUseLab() ?? nftablesMaker.unavailable ?? false
const SHOP = { name: 'www.shop.test', address4: '198.18.40.1', address6: '2001:db8:80::1' }
const DENIED = '198.18.66.6'
const PORT = 7000
const ENDPOINT =
  "{ name: pod1, addresses: [10.20.1.2, 'fd20:1::2'], labels: { app: shop }, interface: lxc1 }"

function mkPolicy(pattern: string): Readonly<Record<string, string>> {
  const text = `
apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: { name: shop }
spec:
  endpointSelector: { matchLabels: { app: shop } }
  egress: [{ toFQDNs: [{ matchPattern: '${pattern}' }] }]
`
  return { 'shop.yaml': text }
}

describe('a node over nftables', { skip }, () => {
  let lab: PodLab
  let namegate: Namegate

  before(async () => {
    lab = podLab()
    namegate = new Namegate(lab, {
      policies: mkPolicy('*.shop.test'),
      endpoints: [ENDPOINT],
      datapath: '{ kind: nftables }',
    })
    const zones = { names: { [SHOP.name]: [SHOP.address4, SHOP.address6] } }
    await Promise.all([lab.startNameServer(zones), startEcho(lab.internet, PORT)])
    await namegate.start({ attached: [] })
    await namegate.untilEnforced()
  })

  after(async () => {
    namegate.daemon.kill('SIGCONT')
    await namegate.close()
    await lab.close()
  })

  async function ask(): Promise<void> {
    const pod = lab.pods[0]
    assert.ok(pod)
    const { stdout } = await pod.host.run('dig', [`@${pod.gateway4}`, '+short', SHOP.name])
    assert.equal(stdout.trim(), SHOP.address4)
  }

  async function open(address: string): Promise<Talk> {
    const pod = lab.pods[0]
    assert.ok(pod)
    return await Talk.open(pod.host, address, PORT)
  }

  /** True if a connection opens before TCP would send a lost SYN again. */
  async function reaches(address: string): Promise<boolean> {
    const pod = lab.pods[0]
    assert.ok(pod)
    const connect = `exec 3<>/dev/tcp/${address}/${PORT}`
    const { code } = await pod.host.run('timeout', ['0.8', 'bash', '-c', connect])
    return code === 0
  }

  async function nft(...args: readonly string[]): Promise<string> {
    const { code, stdout, stderr } = await lab.node.run('nft', args)
    assert.equal(code, 0, stderr)
    return stdout
  }

  it('lets asked addresses pass, and nothing else', async () => {
    assert.equal(await reaches(SHOP.address4), false, 'not asked yet')
    await ask()
    assert.deepEqual([await reaches(SHOP.address4), await reaches(DENIED)], [true, false])
    const { code, stdout } = await namegate.run('datapath', 'verify')
    assert.equal(code, 0, stdout)
  })

  it('cuts a running flow that policy revokes, and lets it continue when policy allows it again', async () => {
    await ask()
    const talk = await open(SHOP.address4)
    namegate.writePolicies(mkPolicy('*.other.test'))
    await assert.rejects(async () => {
      for (let i = 0; i < 20; i++) await talk.moves(5, 1000)
    })
    namegate.writePolicies(mkPolicy('*.shop.test'))
    await talk.moves(5, 15_000)
    await talk.stop()
  })

  it('restores what another program removed from the table', async () => {
    await ask()
    await nft('flush', 'map', 'inet', 'namegate', 'exact4')
    await until('the address is in the table again', async () =>
      (await nft('list', 'map', 'inet', 'namegate', 'exact4')).includes(SHOP.address4),
    )
    assert.equal(await reaches(SHOP.address4), true)
  })

  it('continues to enforce without the daemon, and the next daemon takes it over', async () => {
    await ask()
    const talk = await open(SHOP.address4)
    await namegate.kill()
    await talk.moves(5)
    assert.equal(await reaches(DENIED), false)
    await namegate.start({ attached: [] })
    await ask()
    await talk.moves(5, 15_000)
    await talk.stop()
    await namegate.untilEnforced()
    assert.equal(await reaches(DENIED), false)
  })

  it('mode bypass opens while the daemon is stopped, and detach removes everything', async () => {
    namegate.daemon.kill('SIGSTOP')
    const bypass = await namegate.run('datapath', 'mode', 'bypass')
    assert.equal(bypass.code, 0, bypass.stderr)
    assert.equal(await reaches(DENIED), true)
    const enforce = await namegate.run('datapath', 'mode', 'enforce')
    assert.equal(enforce.code, 0, enforce.stderr)
    assert.equal(await reaches(DENIED), false)
    namegate.daemon.kill('SIGCONT')
    const detach = await namegate.run('datapath', 'detach')
    assert.equal(detach.code, 0, detach.stderr)
    await namegate.daemon.ended(10_000)
    assert.doesNotMatch(await nft('list', 'tables'), /inet namegate$/m)
    assert.equal(await reaches(DENIED), true)
  })
})
