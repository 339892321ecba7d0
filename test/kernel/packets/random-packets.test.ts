// Random packets through the real pair of programs and rules. Nothing that policy denies leaves an endpoint. Where DNS is redirected, no
// DNS packet leaves unchanged, with a listener and without one.
//
// NAMEGATE_PACKETS says how many, over all cases (10,000,000 take some minutes); NAMEGATE_SEED which.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { PacketSite, type PacketCase } from '../../support/labs/packet-site.ts'
import { compiled } from '../../support/peers/compiled.ts'
import { canUseLab } from '../../support/labs/lab.ts'
import { ebpfMaker } from '../../contract/ebpf-bench.ts'
import { nftablesMaker } from '../../contract/nftables-bench.ts'

const skip = canUseLab() ?? ebpfMaker.unavailable ?? nftablesMaker.unavailable ?? false
const SEED = Number(process.env['NAMEGATE_SEED'] ?? 20_261_122)
const PACKETS = Number(process.env['NAMEGATE_PACKETS'] ?? 400_000)

const CASES: readonly (readonly [PacketCase, share: number, counter: string])[] = [
  [{ datapath: 'ebpf', mode: 'tproxy', place: 'veth' }, 4, 'verdict_intercepted'],
  [{ datapath: 'ebpf', mode: 'tproxy', place: 'fence' }, 2, 'verdict_intercepted'],
  [{ datapath: 'ebpf', mode: 'tproxy', place: 'bridge' }, 2, 'verdict_intercepted'],
  [{ datapath: 'ebpf', mode: 'explicit', place: 'veth' }, 2, 'verdict_listener'],
  [{ datapath: 'ebpf', mode: 'redirect', place: 'inside' }, 2, 'drop_policy'],
  // Rules for packets that arrive at an interface do not affect packets that leave by it.
  [{ datapath: 'ebpf', mode: 'tproxy', place: 'inside' }, 1, 'drop_policy'],
  [{ datapath: 'nftables', mode: 'tproxy', place: 'inside' }, 1, 'drop_policy'],
  [{ datapath: 'ebpf', mode: 'redirect', place: 'cgroup' }, 2, 'verdict_listener'],
  [{ datapath: 'nftables', mode: 'tproxy', place: 'veth' }, 2, 'verdict_intercepted'],
  [{ datapath: 'nftables', mode: 'tproxy', place: 'fence' }, 1, 'verdict_intercepted'],
  [{ datapath: 'nftables', mode: 'explicit', place: 'veth' }, 1, 'verdict_listener'],
  [{ datapath: 'nftables', mode: 'redirect', place: 'inside' }, 2, 'drop_policy'],
]
const SHARES = CASES.reduce((sum, [, share]) => sum + share, 0)

/** Packets that got a verdict. */
function judgedOf(counters: Readonly<Record<string, number>>): number {
  const verdicts = Object.entries(counters).filter(([name]) => /^(verdict|drop)_/.test(name))
  return verdicts.reduce((sum, [, packets]) => sum + packets, 0)
}

describe('random packets', { skip, concurrency: false }, () => {
  const program = skip === false ? compiled('random-packets') : ''
  let first = 0

  for (const [kind, share, counter] of CASES) {
    const { datapath, mode, place } = kind
    it(`leave only where policy allows: ${datapath}, ${mode}, ${place}`, async (t) => {
      const count = Math.ceil((PACKETS * share) / SHARES)
      const site = new PacketSite(kind, program)
      await site.start()
      const began = performance.now()
      const sent = await site.send(SEED, first, count)
      const seconds = Math.round((performance.now() - began) / 100) / 10
      const { open, ports, leaks, counters } = await site.close()
      const judged = judgedOf(counters)
      const facts = { sent, judged, leaks: leaks.length, open, ports, seconds }
      t.diagnostic(`seed ${SEED}, from packet ${first}: ${JSON.stringify(facts)}`)
      first += count
      assert.deepEqual(leaks, [], `NAMEGATE_SEED=${SEED}`)
      const least = place === 'inside' || place === 'cgroup' ? 0.2 : 0.99
      assert.ok(sent > count * least, `${sent} of ${count} packets could be sent`)
      assert.ok(judged > sent / 2, `${judged} of ${sent} packets were judged`)
      assert.ok((counters[counter] ?? 0) > count / 1000, JSON.stringify(counters))
      const isFence = place === 'fence'
      assert.equal(open > 0, !isFence, `${open} packets went where all is open`)
      assert.equal(ports > 0, !isFence, `${ports} packets went where one port is`)
    })
  }
})
