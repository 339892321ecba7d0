// The wall clock jumps a day forward while a daemon runs, and back while no daemon runs. The endpoint has a connection that stays open for
// longer than TTL and grace. Connections use the kernel's clock, so the jumps neither cut one nor extend the time of an address.

import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { after, before, describe, it } from 'node:test'
import { PROGRAM } from '../../support/nodes/daemon-process.ts'
import { podLab, type PodLab } from '../../support/labs/lab-pod.ts'
import { canUseNamegate, Namegate } from '../../support/labs/lab-namegate.ts'
import { DAY_MS, ShiftedClock } from '../../support/peers/shifted-clock.ts'
import { canUseSteadyDns } from '../../support/peers/steady-dns.ts'
import { startEcho, Talk } from '../../support/peers/traffic.ts'

const skip = canUseNamegate() ?? canUseSteadyDns() ?? false
const PORT = 7000
const KEPT = { name: 'kept.shop.test', address: '198.18.40.1' }
const LEFT = { name: 'left.shop.test', address: '198.18.40.2' }
const TTL_S = 1
const LIMIT_MS = 60_000

const POLICY = `
apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: { name: shop }
spec:
  endpointSelector: { matchLabels: { app: shop } }
  egress: [ { toFQDNs: [ { matchPattern: '*.shop.test' } ] } ]
`

describe('open connection on a machine whose clock jumps', { skip }, () => {
  let clock: ShiftedClock
  let lab: PodLab
  let namegate: Namegate
  let talk: Talk
  before(async () => {
    clock = new ShiftedClock()
    lab = podLab()
    const names = { [KEPT.name]: [KEPT.address], [LEFT.name]: [LEFT.address] }
    await Promise.all([lab.startNameServer({ names, ttl: TTL_S }), startEcho(lab.internet, PORT)])
    namegate = new Namegate(lab, {
      policies: { 'shop.yaml': POLICY },
      endpoints: ['{ name: pod1, addresses: [10.20.1.2], labels: { app: shop }, interface: lxc1 }'],
      config: 'dns: { grace-after-ttl: 5s }',
    })
    await namegate.start({ command: clock.program(PROGRAM) })
    await ask(KEPT.name)
    talk = await Talk.open(lab.pods[0]!.host, KEPT.address, PORT)
    await ask(LEFT.name)
    clock.set(DAY_MS)
  })
  after(async () => {
    await namegate.close()
    await lab.close()
    clock.close()
  })

  async function ask(name: string): Promise<void> {
    const { host, gateway4 } = lab.pods[0]!
    const { stdout } = await host.run('dig', ['+short', '+tries=1', `@${gateway4}`, name])
    assert.match(stdout, /^198\.18\./)
  }

  async function untilGone(address: string): Promise<void> {
    const deadline = performance.now() + LIMIT_MS
    while (namegate.prefixes().has(`${address}/32`)) {
      assert.ok(performance.now() < deadline, `${address} is still there`)
      await sleep(50)
    }
  }

  it('stays a day later, while an address without a connection expires', async () => {
    await untilGone(LEFT.address)
    await talk.moves()
    assert.ok(namegate.prefixes().has(`${KEPT.address}/32`))
  })

  it('stays after kill -9 and a clock two days back', async () => {
    await namegate.kill()
    clock.set(-DAY_MS)
    await namegate.start({ command: clock.program(PROGRAM) })
    await ask(LEFT.name)
    await untilGone(LEFT.address)
    await talk.moves()
    assert.ok(namegate.prefixes().has(`${KEPT.address}/32`))
  })

  it('releases its address when it is closed, with a clock two days forward', async () => {
    clock.set(DAY_MS)
    await talk.stop()
    await untilGone(KEPT.address)
  })
})
