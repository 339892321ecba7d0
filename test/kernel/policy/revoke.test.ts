// A policy file is edited while flows run. A flow that is not allowed any more is cut, although its peer continues to send. When it is
// allowed again, it continues. A flow that is allowed before and after loses nothing, whatever else changes.

import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { http } from '../../support/nodes/admin.ts'
import { until } from '../../support/peers/client.ts'
import type { Host } from '../../support/labs/lab.ts'
import { podLab, type PodLab } from '../../support/labs/lab-pod.ts'
import { canUseNamegate, Namegate } from '../../support/labs/lab-namegate.ts'
import { Sequence, type SequenceProtocol } from '../../support/peers/sequence.ts'
import { unixNow } from '../../support/peers/traffic.ts'

const skip = canUseNamegate() ?? false

const SHOP = { name: 'www.shop.test', address4: '198.18.40.1', address6: '2001:db8:80::1' }
const ZONES = { names: { [SHOP.name]: [SHOP.address4, SHOP.address6] } }
const ENDPOINT =
  "{ name: pod1, addresses: [10.20.1.2, 'fd20:1::2'], labels: { app: shop }, interface: lxc1 }"
const FLOWS: readonly (readonly [protocol: SequenceProtocol, address: string])[] = [
  ['udp', SHOP.address4],
  ['udp', SHOP.address6],
  ['tcp', SHOP.address4],
]
/** From the write of the file to the last packet that arrives. 100 ms of it are for the file to settle. */
const CUT_MS = 1000
const STAYS_CUT_MS = 3000
/** TCP sends again after longer and longer pauses: 0.2, 0.4, 0.8 ... s after the cut. */
const TCP_RECOVERS_MS = 15_000
const PACE_MS = 20
const FAST_PACE_MS = 5
const SELECTORS = 200
const EDITS = 12

function mkPolicy(name: string, rules: readonly string[]): string {
  return `
apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: { name: ${name} }
spec:
  endpointSelector: { matchLabels: { app: shop } }
  egress:
${rules.map((rule) => `    - ${rule}\n`).join('')}`
}

const SHOP_ALLOWED = mkPolicy('shop', ["toFQDNs: [{ matchPattern: '*.shop.test' }]"])
const SHOP_REVOKED = mkPolicy('shop', ["toFQDNs: [{ matchPattern: '*.other.test' }]"])
/** The same flows allowed by other selectors: each gives the addresses other labels, another identity and other entries. */
const SHOP_IN_OTHER_WORDS = [
  mkPolicy('shop', [`toFQDNs: [{ matchName: ${SHOP.name} }]`]),
  mkPolicy('shop', ["toFQDNs: [{ matchPattern: '**.test' }, { matchPattern: 'w*.shop.test' }]"]),
  mkPolicy('shop', [`toCIDR: [198.18.0.0/15, '2001:db8:80::/48']`]),
  mkPolicy('shop', [
    "toEntities: [world-ipv4]\n      toPorts: [{ ports: [{ port: '7000', endPort: 7010 }] }]",
    'toCIDRSet: [{ cidr: "2001:db8::/32", except: ["2001:db8:81::/48"] }]',
  ]),
  SHOP_ALLOWED,
]

/** Selectors that have nothing to do with the flows: names of every kind, and prefixes. */
function mkUnrelated(edit: number): string {
  const rules = Array.from({ length: SELECTORS / 4 }, (_, i) => [
    `toFQDNs: [{ matchName: n${i}.e${edit}.test }, { matchPattern: '*.p${i}.e${edit}.test' }]`,
    `toCIDR: [10.${edit}.${i}.0/24, 'fd00:${edit}:${i}::/48']`,
  ])
  return mkPolicy('unrelated', rules.flat())
}

describe('policy edit', { skip }, () => {
  let lab: PodLab
  let namegate: Namegate
  let pod: Host
  const write = (file: string, text: string): void =>
    writeFileSync(join(namegate.folder, 'policies', file), text)
  const open = async (port: number, everyMs: number): Promise<Sequence[]> => {
    const hosts = { from: pod, to: lab.internet }
    const opening = FLOWS.map(async ([protocol, address]) => {
      return await Sequence.open(hosts, protocol, address, port, everyMs)
    })
    return await Promise.all(opening)
  }

  before(async () => {
    lab = podLab()
    pod = lab.pods[0]!.host
    // The peers answer from the asked addresses, which no interface has.
    lab.internet.sysctl('net.ipv6.ip_nonlocal_bind=1')
    await lab.startNameServer(ZONES)
    namegate = new Namegate(lab, { policies: { 'shop.yaml': SHOP_ALLOWED }, endpoints: [ENDPOINT] })
    await namegate.start()
    const { stdout } = await pod.run('dig', [
      '+short',
      `@${lab.pods[0]!.gateway4}`,
      SHOP.name,
      'A',
      SHOP.name,
      'AAAA',
    ])
    assert.deepEqual(stdout.trim().split('\n'), [SHOP.address4, SHOP.address6])
  })
  after(async () => {
    await namegate.close()
    await lab.close()
  })

  it('cuts the flows it revokes within 1 s while their peers go on sending, and opens them again', async (t) => {
    const flows = await open(7000, PACE_MS)
    await sleep(500)
    const edited = unixNow()
    write('shop.yaml', SHOP_REVOKED)
    await sleep(CUT_MS + STAYS_CUT_MS)
    for (const flow of flows) {
      const last = flow.atPeer.at(-1)?.time ?? NaN
      const late = flow.atPeer.filter(({ time }) => time > edited + CUT_MS).length
      const back = flow.back.filter(({ time }) => time > edited + CUT_MS).length
      t.diagnostic(
        `${flow.title}: cut ${(last - edited).toFixed(0)} ms after the write; in the ${STAYS_CUT_MS} ms from 1 s on ${late} came to the peer, ${back} of its own came back`,
      )
      assert.ok(last > edited, `${flow.title} was alive at the edit`)
      assert.equal(late, 0, `${flow.title}: last packet ${last - edited} ms after the write`)
      // TCP stalls in both directions, because nothing is acknowledged. UDP shows that the peer continues to send.
      if (flow.title.startsWith('udp')) assert.ok(back > (STAYS_CUT_MS / PACE_MS) * 0.8)
    }
    const opened = unixNow()
    write('shop.yaml', SHOP_ALLOWED)
    for (const flow of flows) {
      const limit = flow.title.startsWith('udp') ? CUT_MS : TCP_RECOVERS_MS
      const { time } = await flow.untilArrival(opened, limit)
      t.diagnostic(`${flow.title}: open ${(time - opened).toFixed(0)} ms after the write`)
    }
    await Promise.all(flows.map(async (flow) => await flow.quiet()))
  })

  it(`loses no packet of kept flows while ${SELECTORS} unrelated selectors are added and removed`, async (t) => {
    const flows = await open(7001, FAST_PACE_MS)
    const dropped = await namegate.stat('drop_policy')
    let revision = await realized()
    for (let edit = 0; edit < EDITS; edit++) {
      write('unrelated.yaml', edit % 2 === 0 ? mkUnrelated(edit) : mkPolicy('unrelated', ['{}']))
      write('shop.yaml', SHOP_IN_OTHER_WORDS[edit % SHOP_IN_OTHER_WORDS.length]!)
      revision = await untilRealized(revision + 1)
    }
    await Promise.all(flows.map(async (flow) => await flow.quiet()))
    assert.equal((await namegate.stat('drop_policy')) - dropped, 0)
    for (const flow of flows) {
      t.diagnostic(`${flow.title}: ${EDITS} edits, ${flow.atPeer.length} of ${flow.sent} arrived`)
      assert.deepEqual(missing(flow.atPeer, flow.sent), [])
      assert.deepEqual(missing(flow.back, flow.sentBack), [])
      assert.ok(flow.sent > 200)
    }
  })

  async function realized(): Promise<number> {
    const { text } = await http({ socketPath: join(namegate.folder, 'admin.sock') }, '/v1/status')
    return (JSON.parse(text) as { readonly realizedRevision: number }).realizedRevision
  }

  async function untilRealized(revision: number): Promise<number> {
    let now = 0
    const isRealized = async (): Promise<boolean> => (now = await realized()) >= revision
    await until(`revision ${revision}`, isRealized, 15_000, 20)
    return now
  }
})

/** Numbers below `sent` that did not arrive. */
function missing(came: readonly { readonly number: number }[], sent: number): readonly number[] {
  const numbers = new Set(came.map(({ number }) => number))
  return Array.from({ length: sent }, (_, i) => i).filter((i) => !numbers.has(i))
}
