// Starting enforcement cuts no open connection: what was open before `run` continues for `adopt-existing`. Connections that begin meanwhile
// or later, and endpoints that the daemon gets later, are under policy.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { objectIn } from '../../support/nodes/command.ts'
import { podLab, WEB_4, type Pod, type PodLab } from '../../support/labs/lab-pod.ts'
import type { NamegateOptions } from '../../support/labs/lab-namegate-config.ts'
import { canUseNamegate, Namegate } from '../../support/labs/lab-namegate.ts'
import { ManyTalks } from '../../support/peers/many-talks.ts'
import { readExposition } from '../../support/nodes/metrics.ts'
import { Probe, startEcho } from '../../support/peers/traffic.ts'

const CONNECTIONS = 1000
const LATE_CONNECTIONS = 10
/** Longer than a busy machine needs to start the daemon and to move two lines on every connection. */
const ADOPT_MS = 20_000
const PORT = 7000
/** In WEB_4; no policy names it. */
const UNNAMED = '198.18.7.7'
const LISTED = 'namegate_datapath_flows_adopted_total{result="taken"}'
const POLICY = `
apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: { name: nothing }
spec:
  endpointSelector: {}
  egress: [{ toFQDNs: [{ matchName: nothing.test }] }]
`

function mkEndpoint(name: string, { address4, interface: link }: Pod): string {
  return `{ name: ${name}, addresses: [${address4}], labels: { app: ${name} }, interface: ${link} }`
}

function podOf(lab: PodLab, i: number): Pod {
  const pod = lab.pods[i]
  assert.ok(pod !== undefined)
  return pod
}

const refusal = canUseNamegate()

describe('namegate run over open connections', { skip: refusal ?? false }, () => {
  let lab: PodLab
  let namegate: Namegate
  let first: ManyTalks
  let late: ManyTalks
  let options: NamegateOptions
  let startedAt: number

  before(async () => {
    assert.ok(WEB_4.startsWith('198.18.'))
    lab = podLab({ pods: 2 })
    // The kernel tracks connections only if a rule needs it.
    const rule =
      'add table inet watch; add chain inet watch passing { type filter hook forward priority 0; }; add rule inet watch passing ct state new accept'
    assert.equal((await lab.node.run('nft', [rule])).code, 0)
    await lab.startNameServer({ names: {} })
    await startEcho(lab.internet, PORT)
    const open = async (pod: number, count: number): Promise<ManyTalks> =>
      await ManyTalks.open(podOf(lab, pod).host, UNNAMED, PORT, count)
    ;[first, late] = await Promise.all([open(0, CONNECTIONS), open(1, LATE_CONNECTIONS)])
    options = {
      policies: { 'nothing.yaml': POLICY },
      endpoints: [mkEndpoint('first', podOf(lab, 0))],
    }
    namegate = new Namegate(lab, options)
    const pins = `ebpf: { pin-path: '${namegate.pinPath}' }`
    const datapath = `{ kind: ebpf, ${pins}, adopt-existing: ${ADOPT_MS}ms }`
    options = { ...options, datapath }
    namegate.writeConfig(options)
    startedAt = performance.now()
    await namegate.start({ attached: [podOf(lab, 0).interface] })
  })
  after(async () => {
    await namegate?.close()
    await lab?.close()
  })

  it('cuts none of 1,000, and lists them with their owner', async (t) => {
    await first.moves(2)
    assert.equal(first.open, CONNECTIONS)
    t.diagnostic(
      `each of ${CONNECTIONS} moved ${Math.round(performance.now() - startedAt)} ms after the start`,
    )
    const rows = await namegate.get('endpoints')
    assert.ok(Array.isArray(rows))
    const [row] = rows.map((each) => objectIn(JSON.stringify(each)))
    assert.deepEqual([row?.['name'], row?.['adoptedFlows']], ['first', CONNECTIONS])
    const entries = await namegate.get('datapath')
    assert.ok(Array.isArray(entries))
    const listed = entries
      .map((each) => objectIn(JSON.stringify(each)))
      .filter(({ map }) => map === 'ng_adopted')
    assert.equal(listed.length, CONNECTIONS)
    const key = new RegExp(
      `^endpoint ${Number(row?.['id'])} TCP 10\\.20\\.1\\.2:\\d+ to ${UNNAMED}:${PORT}$`,
    )
    for (const entry of listed) assert.match(String(entry['key']), key)
    // The daemon listed them from conntrack before the first packet, and did not learn them from segments.
    const { stdout } = await lab.node.run('curl', ['-s', 'http://127.0.0.1:9465/metrics'])
    const listedAtStart = readExposition(stdout).samples.get(LISTED)
    assert.equal(listedAtStart, CONNECTIONS)
    assert.match(namegate.daemon.stderr, /flows that are older than enforcement pass for a while/)
  })

  it('refuses a new connection to the same address meanwhile', async () => {
    await refusesNew(podOf(lab, 0))
  })

  it('spares no connection of an endpoint that is added later', async () => {
    namegate.writeConfig({
      ...options,
      endpoints: [0, 1].map((i) => mkEndpoint(['first', 'late'][i] ?? '', podOf(lab, i))),
    })
    const { interface: link } = podOf(lab, 1)
    await namegate.daemon.until(() => (namegate.isAttached(link) ? true : undefined), 'attached')
    await drops(5)
    const before = late.all
    await drops(LATE_CONNECTIONS)
    assert.equal(late.all, before, 'no line came back')
  })

  it('ends them after adopt-existing, and still refuses new ones', async () => {
    const left = startedAt + ADOPT_MS - performance.now()
    if (left > 0) await sleep(left)
    const drained = async (): Promise<boolean> => {
      const { all } = first
      await drops(CONNECTIONS)
      return first.all === all
    }
    for (let i = 0; !(await drained()); i++) assert.ok(i < 10, 'lines still arrive')
    await refusesNew(podOf(lab, 0))
  })

  /** Waits until the programs have dropped `count` more packets. */
  async function drops(count: number): Promise<void> {
    const goal = (await namegate.stat('drop_policy')) + count
    const deadline = performance.now() + 15_000
    while ((await namegate.stat('drop_policy')) < goal) {
      assert.ok(performance.now() < deadline, `expected ${count} more drops`)
      await sleep(20)
    }
  }

  async function refusesNew({ host }: Pod): Promise<void> {
    const probe = await Probe.begin(host, 100, UNNAMED, PORT)
    await namegate.daemon.until(
      () => (probe.attempts(PORT).length >= 2 ? true : undefined),
      'two attempts',
    )
    await probe.stop()
    assert.ok(probe.attempts(PORT).every(({ connected }) => !connected))
  }
})
