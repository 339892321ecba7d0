// The nftables datapath when other programs change or remove its table, when the kernel refuses a batch, and when the mode is set without
// the daemon.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { describe, test } from 'node:test'
import { removeTable, setTableMode } from '../../../src/datapath/nftables/break-glass.ts'
import { Message } from '../../../src/datapath/nftables/netlink/message.ts'
import { LAYOUT } from '../../../src/datapath/nftables/rules/layout.ts'
import { loadNetlink } from '../../../src/native/native.ts'
import {
  batch,
  commit,
  LEARNED,
  PEER_4,
  POD,
  POD_4,
  policy,
  settle,
  WORLD_4,
} from '../../contract/bench.ts'
import {
  makeNftablesBench,
  nftablesMaker,
  type NftablesBench,
} from '../../contract/nftables-bench.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { frame, SYN, tcp } from '../../support/packets.ts'

const OTHER_4 = '203.0.113.9'
const to443 = tcp({ from: 40000, to: 443 }, SYN)
const allowed = frame({ source: POD_4, target: PEER_4 }, to443)
const denied = frame({ source: POD_4, target: OTHER_4 }, to443)

function nft(...args: readonly string[]): string {
  return execFileSync('nft', [...args], { encoding: 'utf8' })
}

/** A bench whose clock the test moves. */
function withClock(run: (bench: NftablesBench, look: () => void) => void): void {
  const clock = new FakeClock()
  const bench = makeNftablesBench({}, { clock })
  try {
    settle(bench, [policy({ identity: LEARNED, protocol: 6, port: 443 })])
    bench.datapath.hooks.refresh()
    bench.datapath.finishCommit()
    run(bench, () => {
      clock.advance(2000)
      bench.datapath.hooks.refresh()
      bench.datapath.finishCommit()
    })
  } finally {
    bench.close()
  }
}

/** A batch about a missing table. The kernel refuses it. */
function strangersBatch(): Message {
  const message = new Message()
  message.beginBatch()
  const at = message.begin(2, 0)
  message.text(1, 'nobody')
  message.end()
  message.endBatch(at)
  return message
}

function repairsOf({ datapath }: NftablesBench): number {
  return datapath.reports.counters()['table_repairs'] ?? NaN
}

describe('nftables table', { skip: nftablesMaker.unavailable ?? false }, () => {
  test('drops packets for which a map has no value, as when another program deletes the default of a map', () => {
    const bench = makeNftablesBench()
    try {
      settle(bench, [policy({ identity: LEARNED, protocol: 6, port: 443 })])
      assert.equal(bench.judge(POD, 'from', allowed), 'pass')
      for (const map of ['policies', 'ports']) {
        nft('delete', 'element', 'inet', 'namegate', map, '{ * : 0x0 . 0x0 }')
        for (const octets of [allowed, denied]) {
          assert.equal(bench.judge(POD, 'from', octets), 'drop', `${map} without its default`)
        }
      }
    } finally {
      bench.close()
    }
  })

  test('refresh writes the table again after another program removed or changed it, and not for tables of others', () => {
    withClock((bench, look) => {
      const rows: readonly (readonly [change: string, repaired: boolean])[] = [
        ['delete table inet namegate', true],
        ['flush table inet namegate', true],
        ['flush chain inet namegate in_ported4', true],
        ['flush map inet namegate exact4', true],
        ['flush map inet namegate policies', true],
        ['flush map inet namegate verdicts_in4', true],
        ['add rule inet namegate in_from accept', true],
        ['add element inet namegate unenforced { 0x5 }', true],
        ['add table inet others', false],
        ['delete table inet others', false],
      ]
      let told = 0
      bench.datapath.repair.onRepaired((_, count) => (told += count))
      for (const [change, repaired] of rows) {
        told = 0
        nft(change)
        look()
        assert.equal(told > 0, repaired, `${change}: told`)
        assert.equal(bench.judge(POD, 'from', allowed), 'pass', change)
        assert.equal(bench.judge(POD, 'from', denied), 'drop', change)
      }
    })
  })

  test('commit over a removed table writes all of it, and is no failure', () => {
    withClock((bench) => {
      nft('delete', 'table', 'inet', 'namegate')
      const upserts = batch([['192.0.2.7/32', LEARNED, WORLD_4]])
      assert.deepEqual(commit(bench.datapath, { prefixUpserts: upserts }), [])
      assert.equal(repairsOf(bench), 1)
      assert.equal(bench.judge(POD, 'from', allowed), 'pass')
      assert.equal(bench.judge(POD, 'from', denied), 'drop')
    })
  })

  test('commit that the kernel refuses twice names every entry and leaves none, and the next commit succeeds', () => {
    const netlink = loadNetlink()
    let isRefused = false
    const bench = makeNftablesBench(
      {},
      {
        netlink: {
          ...netlink,
          nlSubmit: (worker, octets, size) => {
            const wrong = strangersBatch()
            return isRefused
              ? netlink.nlSubmit(worker, wrong.octets, wrong.size)
              : netlink.nlSubmit(worker, octets, size)
          },
        },
      },
    )
    try {
      settle(bench, [policy({ identity: LEARNED })])
      isRefused = true
      const failures = commit(bench.datapath, {
        policyUpserts: [policy({ verdict: 'allow' })],
        prefixUpserts: batch([[`${OTHER_4}/32`, LEARNED, WORLD_4]]),
        policyRemovals: [policy({ identity: LEARNED })],
      })
      assert.deepEqual(
        failures.map(({ section, action, index, code }) =>
          [section, action, index, code].join(' '),
        ),
        ['policy upsert 0 ENOENT', 'prefix upsert 0 ENOENT', 'policy remove 0 ENOENT'],
      )
      isRefused = false
      assert.equal(bench.judge(POD, 'from', denied), 'drop')
      assert.equal(bench.judge(POD, 'from', allowed), 'pass')
      commit(bench.datapath, { prefixUpserts: batch([['192.0.2.7/32', LEARNED, WORLD_4]]) })
      assert.equal(repairsOf(bench), 1)
      assert.equal(bench.datapath.dump().prefixes.count, 3)
      assert.equal(bench.datapath.dump().policies.length, 1)
      assert.equal(bench.judge(POD, 'from', denied), 'drop')
      assert.equal(bench.judge(POD, 'from', allowed), 'pass')
    } finally {
      bench.close()
    }
  })

  test('start and commit split a batch that is too long', () => {
    const netlink = loadNetlink()
    const room = 320_000
    const sent: number[] = []
    const bench = makeNftablesBench(
      {},
      {
        netlink: {
          ...netlink,
          nlRoom: () => room,
          nlRequest: (fd, octets, size, results) => {
            sent.push(size)
            return netlink.nlRequest(fd, octets, size, results)
          },
        },
      },
    )
    try {
      const rows = Array.from({ length: 8000 }, (_, i) => {
        return [`100.64.${i >> 8}.${i & 255}/32`, LEARNED, WORLD_4] as const
      })
      const entries = Array.from({ length: 2000 }, (_, i) =>
        policy({ identity: LEARNED + i, protocol: 6, port: i + 1 }),
      )
      settle(bench, [policy({ identity: LEARNED, protocol: 6, port: 443 })])
      const changes = { prefixUpserts: batch(rows), policyUpserts: entries }
      assert.deepEqual(commit(bench.datapath, changes), [])
      bench.restart()
      const { prefixes, policies } = bench.datapath.dump()
      assert.deepEqual([prefixes.count, policies.length], [8002, 2001])
      assert.ok(Math.max(...sent) <= room, `the longest had ${Math.max(...sent)} octets`)
      assert.equal(bench.judge(POD, 'from', allowed), 'pass')
      assert.equal(bench.judge(POD, 'from', denied), 'drop')
    } finally {
      bench.close()
    }
  })

  test('setTableMode and removeTable need no daemon, and a repair keeps the mode', () => {
    withClock((bench, look) => {
      setTableMode(loadNetlink(), 'bypass')
      assert.equal(bench.judge(POD, 'from', denied), 'pass')
      assert.equal(bench.datapath.mode.read(), 'bypass')
      nft('flush', 'chain', 'inet', 'namegate', 'in_ported4')
      look()
      assert.equal(bench.datapath.mode.read(), 'bypass', 'repaired with the mode of the kernel')
      setTableMode(loadNetlink(), 'enforce')
      assert.equal(bench.judge(POD, 'from', denied), 'drop')
      assert.equal(removeTable(loadNetlink()), 1)
      assert.equal(removeTable(loadNetlink()), 0)
      assert.throws(() => setTableMode(loadNetlink(), 'audit'), /there is no nftables table/)
    })
  })

  test('nft can list the table with its elements', () => {
    withClock(() => {
      const listed = nft('list', 'table', 'inet', 'namegate')
      assert.ok(listed.includes(`comment "layout ${LAYOUT}"`))
      assert.match(listed, /0x00000000 \. 192\.0\.2\.1 : /)
      assert.match(listed, /chain in_ported4 \{/)
      assert.ok(JSON.parse(nft('-j', 'list', 'table', 'inet', 'namegate')))
    })
  })
})
