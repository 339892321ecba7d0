// The nftables datapath starts again over the table that it wrote. It writes nothing, so no packet meets a change. It replaces any other
// table.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { describe, test } from 'node:test'
import { loadNetlink } from '../../../src/native/native.ts'
import { commit, LEARNED, PEER_4, POD, POD_4, policy, settle } from '../../contract/bench.ts'
import { makeNftablesBench, nftablesMaker } from '../../contract/nftables-bench.ts'
import { frame, SYN, tcp } from '../../support/packets.ts'

const to443 = tcp({ from: 40000, to: 443 }, SYN)
const allowed = frame({ source: POD_4, target: PEER_4 }, to443)
const denied = frame({ source: POD_4, target: '203.0.113.9' }, to443)
const ENTRY = policy({ identity: LEARNED, protocol: 6, port: 443 })
const OTHER_ENTRY = policy({ identity: LEARNED, protocol: 17, port: 53 })

/** The length of the message that subscribes to drops, which changes no table. */
const BIND_OCTETS = 48

/** The handle of the table. Each new table has another one. */
function handle(): string {
  const args = ['-a', 'list', 'table', 'inet', 'namegate']
  const listed = execFileSync('nft', args, { encoding: 'utf8' })
  return /^table inet namegate \{ # handle \d+/.exec(listed)?.[0] ?? ''
}

describe('nftables start', { skip: nftablesMaker.unavailable ?? false }, () => {
  test('writes nothing over the table that it wrote, and continues from there', () => {
    const netlink = loadNetlink()
    let written = 0
    const counted = {
      ...netlink,
      nlSubmit: (...args: Parameters<typeof netlink.nlSubmit>) => {
        written++
        return netlink.nlSubmit(...args)
      },
      nlRequest: (...args: Parameters<typeof netlink.nlRequest>) => {
        if (args[2] > BIND_OCTETS) written++
        return netlink.nlRequest(...args)
      },
    }
    const bench = makeNftablesBench({}, { netlink: counted, isConfirmed: true })
    try {
      settle(bench, [ENTRY])
      const before = written
      bench.restart()
      settle(bench, [ENTRY])
      assert.equal(written, before, 'neither at the start nor for the same content')
      assert.equal(bench.judge(POD, 'from', allowed), 'pass')
      assert.equal(bench.judge(POD, 'from', denied), 'drop')
      const changes = { policyUpserts: [OTHER_ENTRY], policyRemovals: [ENTRY] }
      assert.deepEqual(commit(bench.datapath, changes), [])
      bench.restart()
      assert.deepEqual(bench.datapath.dump().policies, [OTHER_ENTRY])
      assert.equal(bench.judge(POD, 'from', allowed), 'drop')
    } finally {
      bench.close()
    }
  })

  test('replaces a table that another program changed', () => {
    const rows: readonly (readonly [change: string, isReplaced: boolean])[] = [
      ['add table inet others', false],
      ['delete table inet others', false],
      ['flush chain inet namegate in_ported4', true],
      ['add rule inet namegate in_from accept', true],
      ['flush map inet namegate verdicts_in4', true],
      ['flush map inet namegate policies', true],
      ['flush map inet namegate ports', true],
      ['flush set inet namegate written', true],
    ]
    const bench = makeNftablesBench({}, { isConfirmed: true })
    try {
      for (const [change, isReplaced] of rows) {
        settle(bench, [ENTRY])
        const before = handle()
        execFileSync('nft', [change])
        bench.restart()
        assert.equal(handle() !== before, isReplaced, change)
        assert.equal(bench.judge(POD, 'from', denied), 'drop', change)
      }
    } finally {
      bench.close()
    }
  })
})
