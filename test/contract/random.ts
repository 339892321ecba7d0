// Contract: random prefixes and policies. An evaluator that knows only the text of the rule gives the expected verdict: the longest prefix
// has identity and class; of the entries for the identity, for the class and for any identity, the longest match on (protocol, port)
// counts at each of the three; deny beats allow, and allow beats audit.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { identity } from '../../src/core/ids.ts'
import { containsPrefix, formatPrefix, truncatePrefix, type Prefix } from '../../src/core/ip.ts'
import type { PolicyEntry } from '../../src/datapath/entries.ts'
import { PrefixBatch } from '../../src/datapath/prefix-batch.ts'
import { frame, icmp, sctp, SYN, tcp, udp, type Segment } from '../support/packets.ts'
import { Random } from '../support/models/random.ts'
import { commit, policy, POD, POD_4, POD_6, prefix, settle, type BenchMaker } from './bench.ts'
import { withBench } from './commits.ts'

const ROUNDS = 40
const PACKETS = 60
const FIRST = 2 ** 24
const PASSES = ['allow', 'audit', 'audit-pass'] as const

interface Known {
  readonly prefix: Prefix
  readonly identity: number
  readonly class: number
}

interface Packet {
  readonly address: Prefix
  readonly protocol: number
  readonly port: number
}

export function contractOfRandomPolicies(maker: BenchMaker): void {
  const skip = maker.unavailable ?? false
  describe(`${maker.name}: random policies`, { skip }, () => {
    test('judge equals a naive reading of the rule', () => {
      withBench(maker, {}, (bench) => {
        const seed = 20_260_731
        const random = new Random(seed)
        settle(bench, [])
        commit(bench.datapath, { prefixRemovals: bench.datapath.dump().prefixes })
        const tally = { pass: 0, drop: 0 }
        for (let round = 0; round < ROUNDS; round++) {
          const known = somePrefixes(random)
          const entries = someEntries(random, known)
          const prefixes = batchOf(known)
          const failures = commit(bench.datapath, {
            policyUpserts: entries,
            prefixUpserts: prefixes,
          })
          assert.deepEqual(failures, [])
          for (let i = 0; i < PACKETS; i++) {
            const packet = somePacket(random, known)
            const got = bench.judge(POD, 'from', octetsOf(packet))
            const want = naive(known, entries, packet)
            tally[want]++
            assert.equal(got, want, `seed ${seed}, round ${round}: ${describePacket(packet)}`)
          }
          commit(bench.datapath, { policyRemovals: entries, prefixRemovals: prefixes })
        }
        const least = (ROUNDS * PACKETS) / 5
        assert.ok(
          Math.min(tally.pass, tally.drop) > least,
          `both verdicts occur: ${JSON.stringify(tally)}`,
        )
      })
    })
  })
}

function naive(
  known: readonly Known[],
  entries: readonly PolicyEntry[],
  packet: Packet,
): 'pass' | 'drop' {
  const around = known.filter((each) => containsPrefix(each.prefix, packet.address))
  around.sort((a, b) => b.prefix.length - a.prefix.length)
  const world = packet.address.family === 4 ? 9 : 10
  const found = around[0] ?? { identity: world, class: world }
  const verdicts = [found.identity, found.class, 0].map((id) => {
    const matching = entries.filter((entry) => entry.identity === id && covers(entry, packet))
    matching.sort((a, b) => width(a) - width(b))
    return matching[0]?.verdict
  })
  if (verdicts.includes('deny')) return 'drop'
  return verdicts.some((each) => PASSES.some((one) => one === each)) ? 'pass' : 'drop'
}

/** How many (protocol, port) pairs an entry covers. */
function width(entry: PolicyEntry): number {
  return entry.protocol === 0 ? 2 ** 24 : 2 ** (16 - entry.portBits)
}

function covers(entry: PolicyEntry, packet: Packet): boolean {
  if (entry.protocol === 0) return true
  const first = entry.port
  return (
    entry.protocol === packet.protocol && packet.port >= first && packet.port < first + width(entry)
  )
}

function somePrefixes(random: Random): readonly Known[] {
  const known = new Map<string, Known>()
  for (let i = random.below(12); i > 0; i--) {
    const base = random.oneIn(2)
      ? prefix(`198.18.${random.below(4)}.${random.below(256)}`)
      : prefix(`2001:db8:${random.below(4)}::${random.below(16).toString(16)}`)
    const length = base.length - random.pick([0, 0, 0, 1, 8, 16, base.length])
    const whole = truncatePrefix(base, length)
    const kind = random.pick([1, 11, 12, base.family === 4 ? 9 : 10])
    known.set(formatPrefix(whole), {
      prefix: whole,
      identity: random.oneIn(6) ? kind : FIRST + random.below(6),
      class: kind,
    })
  }
  return [...known.values()]
}

function someEntries(random: Random, known: readonly Known[]): readonly PolicyEntry[] {
  const identities = [0, 9, 10, ...known.flatMap((each) => [each.identity, each.class])]
  const entries = new Map<string, PolicyEntry>()
  for (let i = random.below(16); i > 0; i--) {
    const protocol = random.pick([0, 6, 6, 6, 17, 17, 132, 1, 58])
    const hasPorts = protocol === 6 || protocol === 17 || protocol === 132
    const portBits = hasPorts ? random.pick([0, 1, 6, 13, 15, 16]) : 0
    const port = somePort(random) & (0xffff << (16 - portBits)) & 0xffff
    const entry = policy({
      identity: random.pick(identities),
      protocol,
      port,
      portBits,
      verdict: random.pick([
        'allow',
        'allow',
        'allow',
        'deny',
        'audit',
        'audit-deny',
        'audit-pass',
      ]),
    })
    entries.set([entry.identity, protocol, port, portBits].join(' '), entry)
  }
  return [...entries.values()]
}

function somePort(random: Random): number {
  return random.pick([0, 1, 53, 80, 443, 440, 447, 8080, 65535, random.below(65536)])
}

function somePacket(random: Random, known: readonly Known[]): Packet {
  const fresh = random.oneIn(2) ? prefix('198.18.1.1') : prefix('2001:db8:1::1')
  const address = known.length === 0 || random.oneIn(4) ? fresh : inside(random, random.pick(known))
  const ping = address.family === 4 ? 1 : 58
  const protocol = random.pick([6, 6, 17, 17, 132, ping])
  return { address, protocol, port: protocol === ping ? 0 : somePort(random) }
}

/** An address of the prefix. */
function inside(random: Random, { prefix: { family, octets, length } }: Known): Prefix {
  const width = family === 4 ? 32 : 128
  const address = octets.slice()
  for (let bit = length; bit < width; bit++) {
    if (random.oneIn(2)) address[bit >> 3] = (address[bit >> 3] ?? 0) | (0x80 >> (bit & 7))
  }
  return { family, octets: address, length: width }
}

function octetsOf({ address, protocol, port }: Packet): Uint8Array {
  const target = formatPrefix(address).split('/')[0] ?? ''
  const source = address.family === 4 ? POD_4 : POD_6
  return frame({ source, target }, segmentOf(protocol, { from: 40000, to: port }))
}

function segmentOf(
  protocol: number,
  ports: { readonly from: number; readonly to: number },
): Segment {
  switch (protocol) {
    case 6:
      return tcp(ports, SYN)
    case 17:
      return udp(ports)
    case 132:
      return sctp(ports)
    default:
      return protocol === 1 ? icmp(1, 8) : icmp(58, 128)
  }
}

function batchOf(known: readonly Known[]): PrefixBatch {
  const batch = new PrefixBatch()
  for (const { prefix: each, identity: id, class: kind } of known) {
    batch.add(each, identity(id), identity(kind))
  }
  return batch
}

function describePacket({ address, protocol, port }: Packet): string {
  return `${formatPrefix(address)} protocol ${protocol} port ${port}`
}
