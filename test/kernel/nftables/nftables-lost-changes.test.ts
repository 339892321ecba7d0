// When the kernel drops reports of changes, namegate compares the whole table. It finds what other programs changed, and takes none of its
// own writes for such a change.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { describe, test } from 'node:test'
import { setImmediate as turn, setTimeout as sleep } from 'node:timers/promises'
import { identity } from '../../../src/core/ids.ts'
import type { RepairedEntry } from '../../../src/datapath/repair.ts'
import { PrefixBatch } from '../../../src/datapath/prefix-batch.ts'
import { loadNetlink } from '../../../src/native/native.ts'
import type { NetlinkAddon } from '../../../src/native/netfilter/nftables.ts'
import { commit, LEARNED, PEER_4, POD, POD_4, policy, settle } from '../../contract/bench.ts'
import {
  makeNftablesBench,
  nftablesMaker,
  type NftablesBench,
} from '../../contract/nftables-bench.ts'
import { frame, SYN, tcp } from '../../support/packets.ts'

const LOST = -105
const ADDRESSES = 5000
const LOOKS = 5
const OTHER_4 = '203.0.113.9'
const to443 = tcp({ from: 40000, to: 443 }, SYN)
const allowed = frame({ source: POD_4, target: PEER_4 }, to443)
const denied = frame({ source: POD_4, target: OTHER_4 }, to443)
const EXACT = `0x0 . ${PEER_4}`

/** Drops the kernel's reports and returns that they were lost, once for each `lose`. */
class Losing {
  readonly addon: NetlinkAddon
  #isLost = false

  constructor() {
    const real = loadNetlink()
    this.addon = {
      ...real,
      nlChanges: (fd, table, into) => {
        while (real.nlChanges(fd, table, into) > 0);
        const isLost = this.#isLost
        this.#isLost = false
        return isLost ? LOST : 0
      },
    }
  }

  lose(): void {
    this.#isLost = true
  }
}

const CHANGES: readonly (readonly [what: string, script: string])[] = [
  [
    'a forbidden address',
    `add element inet namegate exact4 { 0x0 . ${OTHER_4} : 0x0 . ${LEARNED} . 0x0 . 0x9 }`,
  ],
  ['a learned address removed', `delete element inet namegate exact4 { ${EXACT} }`],
  [
    'a learned address changed',
    `delete element inet namegate exact4 { ${EXACT} }; add element inet namegate exact4 { ${EXACT} : 0x0 . 0x2 . 0x0 . 0x2 }`,
  ],
  ['all addresses removed', 'flush map inet namegate exact4'],
  ['policy added', 'add element inet namegate policies { 0x0 . 0x7 : 0x0 . 0x1 }'],
  ['policy removed', 'flush map inet namegate policies'],
  ['sources removed', 'flush set inet namegate sources4'],
  ['a source added', 'add element inet namegate sources4 { 0x7 . 10.0.0.0/8 }'],
  ['a fence added', 'add element inet namegate fences_in { "foreign*" }'],
  ['a flow adopted', 'add element inet namegate adopted4 { 0x1234 timeout 1h }'],
  ['an endpoint not enforced', `add element inet namegate unenforced { ${POD} }`],
  ['a rule added', 'insert rule inet namegate in_from accept'],
  ['the closing element removed', 'delete element inet namegate ports { * }'],
  ['the table gone', 'delete table inet namegate'],
]

function addresses(first: number, count: number, isThere = true): PrefixBatch {
  const batch = new PrefixBatch(count)
  const octets = new Uint8Array(16)
  for (let i = first; i < first + count; i++) {
    octets.set([100, 64 + (i >> 16), (i >> 8) & 255, i & 255])
    batch.add({ family: 4, octets, length: 32 }, identity(isThere ? LEARNED : 0), identity(9))
  }
  return batch
}

/** Runs with addresses in the kernel. Passes the list of repairs that were reported. */
async function withTold(
  run: (bench: NftablesBench, losing: Losing, told: RepairedEntry[]) => Promise<void>,
): Promise<void> {
  const losing = new Losing()
  const bench = makeNftablesBench({}, { netlink: losing.addon, isConfirmed: true })
  const told: RepairedEntry[] = []
  try {
    settle(bench, [policy({ identity: LEARNED, protocol: 6, port: 443 })])
    commit(bench.datapath, { prefixUpserts: addresses(0, ADDRESSES) })
    bench.datapath.repair.onRepaired((entry) => told.push(entry))
    await run(bench, losing, told)
  } finally {
    bench.close()
  }
}

async function until(isSo: () => boolean, each: () => void): Promise<void> {
  const late = performance.now() + 30_000
  while (!isSo()) {
    assert.ok(performance.now() < late, 'in time')
    each()
    await turn()
  }
}

describe(
  'nftables changes whose reports were lost',
  { skip: nftablesMaker.unavailable ?? false },
  () => {
    for (const [what, script] of CHANGES) {
      test(`refresh finds ${what}`, async () => {
        await withTold(async (bench, losing, told) => {
          const { datapath } = bench
          const before = datapath.dump().prefixes.count
          execFileSync('nft', [script])
          losing.lose()
          await until(
            () => told.length > 0 && datapath.repair.walks() > 0,
            () => void datapath.hooks.refresh(),
          )
          datapath.finishCommit()
          await until(
            () => datapath.dump().prefixes.count === before,
            () => void datapath.hooks.refresh(),
          )
          datapath.finishCommit()
          assert.equal(bench.judge(POD, 'from', allowed), 'pass')
          assert.equal(bench.judge(POD, 'from', denied), 'drop')
          // Repairs are reported once a second.
          await sleep(1000)
          datapath.hooks.refresh()
          const walks = datapath.repair.walks()
          told.length = 0
          losing.lose()
          await until(
            () => datapath.repair.walks() > walks,
            () => void datapath.hooks.refresh(),
          )
          datapath.hooks.refresh()
          assert.deepEqual(told, [], 'nothing is left to find')
        })
      })
    }

    test('refresh takes none of its own writes for a change of others', async () => {
      await withTold(async ({ datapath }, losing, told) => {
        const first = ADDRESSES
        let written = 0
        for (let look = 0; look < LOOKS; look++) {
          const walks = datapath.repair.walks()
          losing.lose()
          await until(
            () => datapath.repair.walks() > walks,
            () => {
              datapath.hooks.refresh()
              const at = first + (written++ % 64) * 16
              const isThere = written % 128 < 64
              const batch = addresses(at, 16, isThere)
              commit(datapath, isThere ? { prefixUpserts: batch } : { prefixRemovals: batch })
            },
          )
        }
        assert.ok(written > LOOKS, `${written} commits`)
        assert.deepEqual(told, [])
      })
    })
  },
)
