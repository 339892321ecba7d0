// The three datapaths judge the same random packets. memory and eBPF agree on each packet. nftables agrees except for the reasons in the
// list below (docs/decisions/0022-…).

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { isTagged, readFrame } from '../../support/models/packet-model/packet.ts'
import {
  batch,
  commit,
  endpoint,
  listener,
  POD,
  policy,
  type BenchMaker,
} from '../../contract/bench.ts'
import { ebpfMaker } from '../../contract/ebpf-bench.ts'
import { memoryMaker } from '../../contract/memory-bench.ts'
import { nftablesMaker } from '../../contract/nftables-bench.ts'
import { KNOWN, POLICIES, printPackets } from '../../support/models/random-packets.ts'
import { compiled } from '../../support/peers/compiled.ts'

const skip = ebpfMaker.unavailable ?? nftablesMaker.unavailable ?? false
const SEED = Number(process.env['NAMEGATE_SEED'] ?? 20_261_122)
const PACKETS = Number(process.env['NAMEGATE_COMPARED'] ?? 10_000)
const BOTH = { 4: true, 6: true } as const
const HERE = [2, 0, 0, 0, 0, 1]
const EXTENSIONS = [0, 43, 44, 51, 60]
const OPEN_6 = '20010db8000000000000000000000001'

type Verdict = 'pass' | 'drop' | 'refused'

interface Difference {
  readonly reason: string
  /** The verdict of nftables, the opposite of the others. */
  readonly says: 'pass' | 'drop'
  readonly fits: (frame: Uint8Array) => boolean
}

/** Reasons why the verdict of nftables can differ. */
const DIFFERENCES: readonly Difference[] = [
  {
    reason: 'no rule sees a frame for another station',
    says: 'drop',
    fits: (frame) => !HERE.every((octet, i) => frame[i] === octet),
  },
  {
    reason: 'a tagged frame arrives at a VLAN interface, which is another interface',
    says: 'drop',
    fits: isTagged,
  },
  {
    reason: 'the kernel removes a tag of VLAN 0 before the rules, which redirect the DNS in it',
    says: 'pass',
    fits: (frame) => isTagged(frame) && word(frame, 14) % 4096 === 0 && isQuery(frame),
  },
  {
    reason: 'the kernel reassembles fragments before the rules',
    says: 'drop',
    fits: (frame) => fragmentOf(frame) !== undefined,
  },
  {
    reason: 'the last fragment brings the others with it',
    says: 'pass',
    fits: (frame) => (fragmentOf(frame) ?? 0) !== 0,
  },
  {
    reason:
      'a fragment that is whole loses its header before the rules, which redirect the DNS in it',
    says: 'pass',
    fits: (frame) => fragmentOf(frame) === 0 && isQuery(frame),
  },
  {
    reason: 'nftables finds a routing header behind an authentication header, too',
    says: 'drop',
    fits: isHiddenRoute,
  },
  {
    reason: 'an authentication header must be complete',
    says: 'drop',
    fits: (frame) =>
      headersOf(frame).some(([type, at]) => type === 51 && at + 8 > networkOf(frame).length),
  },
  {
    reason: 'a protocol without ports may be cut short where every protocol passes',
    says: 'pass',
    fits: (frame) => readFrame(frame).kind === 'malformed' && isOpen(frame),
  },
  {
    reason:
      'the kernel takes a length of zero before hop-by-hop options for one that is said in them',
    says: 'pass',
    fits: (frame) => {
      const packet = networkOf(frame)
      return packet[0]! >> 4 === 6 && packet.length === 40 && packet[6] === 0
    },
  },
  {
    reason: 'the kernel refuses unknown hop-by-hop options before any rule',
    says: 'drop',
    fits: (frame) => networkOf(frame)[0]! >> 4 === 6 && networkOf(frame)[6] === 0,
  },
]

describe('random packets judged by three datapaths', { skip }, () => {
  test('have the same verdict, or a difference with a reason', (t) => {
    const frames = printPackets(compiled('random-packets'), SEED, 0, PACKETS)
    const judged = [memoryMaker, ebpfMaker, nftablesMaker].map((maker) => verdictsOf(maker, frames))
    const tally = new Map(DIFFERENCES.map((each) => [each, 0]))
    const passes = judged.map((verdicts) => verdicts.filter((each) => each === 'pass').length)
    for (const [i, frame] of frames.entries()) {
      const [model, program, rules] = judged.map((verdicts) => verdicts[i])
      const what = `seed ${SEED}, packet ${i}: ${Buffer.from(frame).toString('hex')}`
      if (program !== 'refused') assert.equal(program, model, what)
      if (rules === model) continue
      const why = DIFFERENCES.find(({ says, fits }) => says === rules && fits(frame))
      assert.ok(why !== undefined, `nftables says ${rules}, memory ${model}: ${what}`)
      tally.set(why, (tally.get(why) ?? 0) + 1)
    }
    for (const [{ reason }, count] of tally) {
      t.diagnostic(`${count} times ${reason}`)
    }
    assert.ok(
      passes.every((count) => count > PACKETS / 10 && count < PACKETS / 2),
      String(passes),
    )
  })
})

/** The frame up to the end that its IPv6 header gives. */
function networkOf(frame: Uint8Array): Uint8Array {
  const packet = frame.subarray(isTagged(frame) ? 18 : 14)
  return packet[0]! >> 4 === 4 ? packet : packet.subarray(0, 40 + word(packet, 4))
}

/** The offsets of extension headers by type, also behind an authentication header, as the kernel finds them. */
function headersOf(frame: Uint8Array): readonly (readonly [type: number, at: number])[] {
  const packet = networkOf(frame)
  const found: (readonly [number, number])[] = []
  let [type, at] = [packet[6]!, 40]
  while (EXTENSIONS.includes(type)) {
    found.push([type, at])
    if (at + 8 > packet.length) break
    const units = type === 44 ? 0 : packet[at + 1]!
    const size = type === 51 ? (units + 2) * 4 : (units + 1) * 8
    type = packet[at]!
    at += size
  }
  return found
}

/** The offset and flag of a fragment, 0 for a complete packet in one fragment, or undefined. */
function fragmentOf(frame: Uint8Array): number | undefined {
  const packet = networkOf(frame)
  if (packet[0]! >> 4 === 4) return word(packet, 6) & 0x3fff || undefined
  const at = headersOf(frame).find(([type]) => type === 44)?.[1]
  return at === undefined || at + 8 > packet.length ? undefined : word(packet, at + 2) & 0xfff9
}

function isHiddenRoute(frame: Uint8Array): boolean {
  const found = headersOf(frame)
  const from = found.findIndex(([type]) => type === 51)
  return from >= 0 && found.slice(from).some(([type]) => type === 43)
}

function isOpen(frame: Uint8Array): boolean {
  return Buffer.from(networkOf(frame).subarray(24, 40)).toString('hex') === OPEN_6
}

/** True if memory takes the frame for a query to port 53. */
function isQuery(frame: Uint8Array): boolean {
  const read = readFrame(frame)
  return read.kind === 'ip' && read.packet.targetPort === 53
}

function word(octets: Uint8Array, at: number): number {
  return (octets[at]! << 8) | octets[at + 1]!
}

function verdictsOf(maker: BenchMaker, frames: readonly Uint8Array[]): readonly Verdict[] {
  const bench = maker.make()
  try {
    bench.datapath.exceptions.setListeners([
      listener('10.255.0.1', 5300),
      listener('fd01::1', 5300),
    ])
    const failures = commit(bench.datapath, {
      prefixUpserts: batch(KNOWN),
      policyUpserts: POLICIES.map(policy),
      endpointUpserts: [endpoint({ hook: bench.interfaceHook(1) })],
    })
    assert.deepEqual(failures, [])
    bench.datapath.exceptions.setIntercepted([{ ifindex: bench.ifindex(1), families: BOTH }])
    return frames.map((frame) => verdictOf(() => bench.judge(POD, 'from', frame)))
  } finally {
    bench.close()
  }
}

/** Returns `refused` if BPF_PROG_TEST_RUN refuses the frame, because it is shorter than the header of its type. */
function verdictOf(judge: () => 'pass' | 'drop'): Verdict {
  try {
    return judge()
  } catch (error) {
    assert.match(String(error), /EINVAL/)
    return 'refused'
  }
}
