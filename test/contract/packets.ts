// Contract: fragments, malformed packets, extension headers, link housekeeping.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { generation } from '../../src/core/ids.ts'
import {
  destinationOptions,
  discovery,
  ethernet,
  frame,
  hopByHop,
  icmp,
  raw,
  routing,
  SYN,
  tcp,
  udp,
  type Extension,
  type Route,
} from '../support/packets.ts'
import {
  commit,
  endpoint,
  LEARNED,
  PEER_4,
  PEER_6,
  POD,
  POD_4,
  POD_6,
  policy,
  settle,
  skipOf,
  type Ability,
  type BenchMaker,
} from './bench.ts'
import { withBench } from './commits.ts'
import { eventsOf } from './verdicts.ts'

type Verdict = 'pass' | 'drop'

const out4 = { source: POD_4, target: PEER_4 }
const out6 = { source: POD_6, target: PEER_6 }
const ports = { from: 40000, to: 443 }
const to443 = tcp(ports, SYN)
const authentication: Extension = { type: 51, body: new Uint8Array(10) }

/** The first octets of a frame. It has a VLAN tag, because BPF_PROG_TEST_RUN takes no short frames of IP. */
function cut(route: Route, length: number): Uint8Array {
  return frame({ ...route, vlans: ['vlan'] }, to443).subarray(0, length)
}

/** Everything is allowed, so a packet is dropped only for its form. */
const FORM_ROWS: readonly (readonly [Verdict, Uint8Array, string, Ability?])[] = [
  ['pass', frame(out4, to443), 'well-formed'],
  ['pass', frame({ ...out4, vlans: ['vlan'] }, to443), 'one VLAN tag', 'tags'],
  ['pass', frame({ ...out6, vlans: ['qinq', 'vlan'] }, to443), 'two VLAN tags', 'tags'],
  ['drop', frame({ ...out4, vlans: ['qinq', 'vlan', 'vlan'] }, to443), 'three VLAN tags'],
  ['drop', ethernet(0x8864, new Uint8Array(40)), 'PPPoE can carry IP'],
  ['drop', ethernet(0x8847, new Uint8Array(40)), 'MPLS can carry IP'],
  ['drop', frame({ ...out4, version: 6 }, to443), 'IPv4 type, version 6'],
  ['drop', frame({ ...out6, version: 4 }, to443), 'IPv6 type, version 4'],
  ['drop', cut(out4, 34), 'cut in the IPv4 header'],
  ['drop', cut(out6, 54), 'cut in the IPv6 header'],
  ['drop', cut(out4, 54), 'cut in the TCP header'],
  ['drop', frame({ ...out4, length: 19 }, to443), 'total length below the header'],
  ['drop', frame({ ...out4, length: 41 }, to443), 'total length beyond the packet'],
  ['drop', frame({ ...out6, length: 21 }, to443), 'payload length beyond the packet'],
  ['drop', frame({ ...out4, length: 39 }, to443), 'TCP header reaches beyond the packet'],
  ['drop', frame({ ...out6, length: 19 }, to443), 'the same over IPv6'],
  ['drop', frame({ ...out4, length: 27 }, udp(ports)), 'half a UDP header'],
  ['drop', frame(out4, raw(17, new Uint8Array(7))), 'UDP shorter than its header'],
  ['drop', frame(out4, raw(132, new Uint8Array(11))), 'SCTP shorter than its header'],
  ['drop', frame(out4, raw(1, new Uint8Array(7))), 'ICMP shorter than its header'],
  ['drop', frame(out4, tcp(ports, SYN, { offset: 4 })), 'TCP data offset below 5'],
  ['pass', frame({ ...out4, options: Uint8Array.of(0x94, 4, 0, 0) }, to443), 'router alert'],
  ['pass', frame({ ...out4, options: Uint8Array.of(1, 1, 1, 1) }, to443), 'padding'],
  ['drop', frame({ ...out4, options: Uint8Array.of(131, 3, 4, 0) }, to443), 'loose source route'],
  ['drop', frame({ ...out4, options: Uint8Array.of(1, 137, 3, 4) }, to443), 'strict source route'],
  ['drop', frame({ ...out4, options: new Uint8Array(40).fill(7) }, to443), 'record route'],
  ['pass', frame({ ...out6, extensions: [hopByHop, destinationOptions] }, to443), 'options'],
  ['pass', frame({ ...out6, extensions: [authentication] }, to443), 'authentication header'],
  ['drop', frame({ ...out6, extensions: [routing(0)] }, to443), 'a route at its end'],
  ['drop', frame({ ...out6, extensions: [routing(1)] }, to443), 'a route to another address'],
  ['drop', frame({ ...out6, extensions: [routing(0), routing(1)] }, to443), 'two routes'],
  ['pass', frame({ ...out6, extensions: Array(8).fill(destinationOptions) }, to443), 'eight'],
  [
    'drop',
    frame({ ...out6, extensions: Array(9).fill(destinationOptions) }, to443),
    'nine',
    'extensions',
  ],
  ['drop', frame({ ...out6, extensions: [hopByHop], length: 4 }, to443), 'cut extension header'],
  ['pass', frame({ ...out6, fragment: 0 }, to443), 'atomic fragment'],
  ['drop', frame({ ...out4, fragment: 1 }, to443), 'TCP fragment at offset 1'],
  ['drop', frame({ ...out6, fragment: 1 }, to443), 'the same over IPv6'],
  ['drop', frame({ ...out4, moreFragments: true }, raw(6, new Uint8Array(16))), 'tiny fragment'],
]

export function contractOfPackets(maker: BenchMaker): void {
  const skip = maker.unavailable ?? false
  describe(`${maker.name}: forms of packets`, { skip }, () => {
    test('judge drops malformed packets and counts them', () => {
      withBench(maker, {}, (bench) => {
        settle(bench, [policy({})])
        for (const [verdict, octets, reason, ability] of FORM_ROWS) {
          if (ability !== undefined && maker.lacks?.[ability] !== undefined) continue
          const before = bench.datapath.reports.counters()['drop_malformed'] ?? 0
          assert.equal(bench.judge(POD, 'from', octets), verdict, reason)
          const counted = (bench.datapath.reports.counters()['drop_malformed'] ?? 0) - before
          if (verdict === 'drop' && maker.lacks?.malformed !== undefined) continue
          assert.equal(counted, verdict === 'drop' ? 1 : 0, `counted: ${reason}`)
        }
        assert.ok(eventsOf(bench).every((event) => event.reason === 'malformed'))
      })
    })

    test('judge reads the ports after options, extension headers and VLAN tags', () => {
      withBench(maker, {}, (bench) => {
        settle(bench, [policy({ protocol: 6, port: 443 })])
        const routes = [
          { ...out4, options: Uint8Array.of(1, 1, 1, 0) },
          ...(maker.lacks?.tags === undefined ? [{ ...out4, vlans: ['vlan'] as const }] : []),
          { ...out6, extensions: [hopByHop, destinationOptions] },
        ]
        for (const route of routes) {
          assert.equal(bench.judge(POD, 'from', frame(route, to443)), 'pass')
          const other = frame(route, tcp({ from: 40000, to: 444 }, SYN))
          assert.equal(bench.judge(POD, 'from', other), 'drop')
        }
      })
    })

    test(
      'judge passes a later fragment only if policy allows its whole protocol',
      { skip: skipOf(maker, 'fragments') },
      () => {
        withBench(maker, {}, (bench) => {
          const rows: readonly (readonly [Verdict, Parameters<typeof policy>[0], string])[] = [
            ['pass', { identity: LEARNED }, 'every protocol'],
            ['pass', { identity: LEARNED, protocol: 17 }, 'every port of UDP'],
            ['drop', { identity: LEARNED, protocol: 17, port: 443 }, 'one port'],
            ['drop', { identity: LEARNED, protocol: 17, port: 0, portBits: 1 }, 'half the ports'],
            ['drop', { identity: LEARNED, protocol: 6 }, 'another protocol'],
          ]
          for (const [verdict, row, reason] of rows) {
            settle(bench, [policy(row)])
            for (const route of [out4, out6]) {
              const octets = frame({ ...route, fragment: 100 }, udp(ports))
              assert.equal(bench.judge(POD, 'from', octets), verdict, reason)
            }
            commit(bench.datapath, { policyRemovals: [policy(row)] })
          }
          assert.equal(bench.datapath.reports.counters()['drop_fragment'], 6)
          assert.ok(eventsOf(bench).every((event) => event.reason === 'fragment'))
        })
      },
    )

    test('judge of a first fragment reads its ports', { skip: skipOf(maker, 'fragments') }, () => {
      withBench(maker, {}, (bench) => {
        settle(bench, [policy({ protocol: 17, port: 443 })])
        for (const route of [out4, out6]) {
          const first = { ...route, moreFragments: true }
          assert.equal(bench.judge(POD, 'from', frame(first, udp(ports))), 'pass')
          const other = udp({ from: 40000, to: 444 })
          assert.equal(bench.judge(POD, 'from', frame(first, other)), 'drop')
        }
      })
    })

    test('judge lets link housekeeping that cannot leave the link pass, from any source', () => {
      withBench(maker, {}, (bench) => {
        settle(bench, [])
        const nd = { hopLimit: 255 }
        const solicited = 'ff02::1:ff00:5'
        const rows: readonly (readonly [Verdict, Uint8Array, string])[] = [
          [
            'pass',
            frame({ source: '::', target: solicited, ...nd }, discovery(135, POD_6)),
            'duplicate address detection',
          ],
          [
            'pass',
            frame({ source: POD_6, target: solicited, ...nd }, discovery(135, 'fd00::1')),
            'solicitation',
          ],
          [
            'pass',
            frame({ source: 'fe80::5', target: 'fe80::1', ...nd }, discovery(136, POD_6)),
            'advertisement on the link',
          ],
          [
            'pass',
            frame({ source: 'fe80::5', target: 'ff02::2', ...nd }, icmp(58, 133)),
            'router solicitation',
          ],
          [
            'drop',
            frame({ source: 'fe80::5', target: 'ff02::1', ...nd }, icmp(58, 134)),
            'a pod is no router',
          ],
          [
            'drop',
            frame({ source: 'fe80::5', target: 'fe80::1', ...nd }, icmp(58, 137)),
            'a pod sends no redirect',
          ],
          [
            'drop',
            frame({ source: POD_6, target: solicited, hopLimit: 64 }, discovery(135, POD_6)),
            'hop limit',
          ],
          [
            'drop',
            frame({ source: POD_6, target: 'fec0::9', ...nd }, discovery(136, POD_6)),
            'a far stranger, whose address is almost link-local',
          ],
          [
            'drop',
            frame({ source: POD_6, target: solicited, ...nd }, icmp(58, 135, { code: 1 })),
            'code',
          ],
          [
            'drop',
            frame(
              { source: POD_6, target: solicited, ...nd, extensions: [hopByHop] },
              discovery(135, POD_6),
            ),
            'hidden',
          ],
          [
            'pass',
            frame(
              { source: 'fe80::5', target: 'ff02::16', hopLimit: 1, extensions: [hopByHop] },
              icmp(58, 143),
            ),
            'multicast report',
          ],
          [
            'pass',
            frame(
              { source: '::', target: 'ff02::16', hopLimit: 1, extensions: [hopByHop] },
              icmp(58, 143),
            ),
            'before it has an address',
          ],
          [
            'drop',
            frame({ source: 'fe80::5', target: 'ff05::16', hopLimit: 1 }, icmp(58, 143)),
            'site multicast leaves the link',
          ],
          [
            'drop',
            frame({ source: 'fe80::5', target: 'ff02::16', hopLimit: 2 }, icmp(58, 143)),
            'report that could be forwarded',
          ],
        ]
        for (const [verdict, octets, reason] of rows) {
          assert.equal(bench.judge(POD, 'from', octets), verdict, reason)
        }
      })
    })

    test('judge lets discovery pass to an address that was seen on the link', () => {
      withBench(maker, {}, (bench) => {
        settle(bench, [])
        const neighbour = '2001:db8::77'
        const reply = frame(
          { source: POD_6, target: neighbour, hopLimit: 255 },
          discovery(136, POD_6),
        )
        assert.equal(bench.judge(POD, 'from', reply), 'drop')
        const forwarded = { source: neighbour, target: POD_6, hopLimit: 254 }
        bench.judge(POD, 'to', frame(forwarded, discovery(135, POD_6)))
        assert.equal(bench.judge(POD, 'from', reply), 'drop', 'a router forwarded it')
        bench.judge(POD, 'to', frame({ ...forwarded, hopLimit: 255 }, discovery(135, POD_6)))
        assert.equal(bench.judge(POD, 'from', reply), 'pass')
        const probe = frame(
          { source: POD_6, target: PEER_6, hopLimit: 255 },
          discovery(135, PEER_6),
        )
        assert.equal(bench.judge(POD, 'from', probe), 'drop')
        const advert = frame(
          { source: 'fe80::1', target: POD_6, hopLimit: 255 },
          discovery(136, PEER_6),
        )
        bench.judge(POD, 'to', advert)
        assert.equal(
          bench.judge(POD, 'from', probe),
          'pass',
          'its advertisement was for that address',
        )
        const data = frame({ source: POD_6, target: PEER_6 }, udp(ports))
        assert.equal(bench.judge(POD, 'from', data), 'drop', 'discovery only')
        commit(bench.datapath, {
          endpointUpserts: [endpoint({ hook: bench.interfaceHook(1), generation: generation(2) })],
        })
        assert.equal(bench.judge(POD, 'from', reply), 'drop', 'another workload')
      })
    })
  })
}
