// The nftables datapath over real rules, beyond the contract: interfaces that are made again, fenced, or the workload's own, and a start
// without the privilege.

import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { fileURLToPath } from 'node:url'
import { describe, test } from 'node:test'
import { generation } from '../../../src/core/ids.ts'
import type { CommitResult, DatapathEvent } from '../../../src/datapath/entries.ts'
import { NftablesDatapath } from '../../../src/datapath/nftables/adapter.ts'
import { PrefixBatch } from '../../../src/datapath/prefix-batch.ts'
import { ENDPOINT_CLASS } from '../../../src/identity/reserved.ts'
import {
  batch,
  commit,
  endpoint,
  LEARNED,
  listener,
  PEER_4,
  POD,
  POD_4,
  POD_6,
  policy,
  settle,
  WORLD_4,
} from '../../contract/bench.ts'
import { withBench } from '../../contract/commits.ts'
import { makeNftablesBench, nftablesMaker } from '../../contract/nftables-bench.ts'
import { frame, SYN, tcp, udp, type Segment } from '../../support/packets.ts'

const OTHER_4 = '203.0.113.9'
const to443 = tcp({ from: 40000, to: 443 }, SYN)

describe('nftables datapath', { skip: nftablesMaker.unavailable ?? false }, () => {
  test('commit reports its end from the event loop, never inside the call', async () => {
    const bench = makeNftablesBench()
    const alive = setInterval(() => undefined, 1000)
    try {
      const { datapath } = bench
      let result: CommitResult | undefined
      const ended = new Promise<void>((done) => {
        datapath.onCommitted((each) => {
          result = each
          done()
        })
      })
      const prefixUpserts = batch([[`${PEER_4}/32`, LEARNED, WORLD_4]])
      const none = { policyUpserts: [], endpointUpserts: [], endpointRemovals: [] }
      const removals = { prefixRemovals: new PrefixBatch(), policyRemovals: [] }
      assert.equal(datapath.commit({ ...none, ...removals, prefixUpserts }), undefined)
      prefixUpserts.clear()
      assert.equal(result, undefined)
      await ended
      assert.deepEqual(result, [])
      assert.equal(datapath.dump().prefixes.count, 1)
    } finally {
      clearInterval(alive)
      bench.close()
    }
  })

  test('an interface that is made again can only do DNS until another generation is upserted', () => {
    withBench(nftablesMaker, {}, (bench) => {
      assert.ok(bench.datapath instanceof NftablesDatapath)
      execFileSync('ip', ['link', 'add', 'late0', 'type', 'veth', 'peer', 'late1'])
      const late = { kind: 'interface', name: 'late0', side: 'ingress' } as const
      commit(bench.datapath, { endpointUpserts: [endpoint({ hook: late })] })
      assert.deepEqual(bench.datapath.hooks.stateOf(POD), { kind: 'attached' })
      assert.deepEqual(bench.datapath.fences.names, [])
      execFileSync('ip', ['link', 'del', 'late0'])
      assert.deepEqual(bench.datapath.hooks.refresh(), [POD])
      bench.datapath.finishCommit()
      assert.equal(bench.datapath.hooks.stateOf(POD).kind, 'waiting')
      execFileSync('ip', ['link', 'add', 'late0', 'type', 'veth', 'peer', 'late1'])
      bench.datapath.hooks.refresh()
      bench.datapath.finishCommit()
      const state = bench.datapath.hooks.stateOf(POD)
      assert.ok(state.kind === 'waiting' && state.remade === true)
      assert.deepEqual(bench.datapath.fences.names, ['late0'])
      commit(bench.datapath, {
        endpointUpserts: [endpoint({ hook: late, generation: generation(2) })],
      })
      assert.deepEqual(bench.datapath.hooks.stateOf(POD), { kind: 'attached' })
      execFileSync('ip', ['link', 'del', 'late0'])
    })
  })

  test('fence allows only DNS on interfaces that match and belong to no endpoint, and not from the address of an endpoint', () => {
    const bench = makeNftablesBench()
    try {
      const { datapath } = bench
      datapath.exceptions.setListeners([listener('10.0.1.1', 53)])
      commit(datapath, {
        prefixUpserts: batch([[`${POD_4}/32`, LEARNED, ENDPOINT_CLASS]]),
        endpointUpserts: [endpoint({ hook: bench.interfaceHook(1) })],
      })
      datapath.fences.set(['lxc*'])
      datapath.hooks.refresh()
      datapath.finishCommit()
      assert.deepEqual(datapath.fences.names, ['lxc2', 'lxc3'])
      const query = udp({ from: 40000, to: 53 })
      const rows: readonly (readonly ['pass' | 'drop', string, string, Segment, string])[] = [
        ['pass', '10.0.1.7', '10.0.1.1', query, 'DNS to a listener'],
        ['drop', '10.0.1.7', PEER_4, query, 'DNS to another server'],
        ['drop', '10.0.1.7', PEER_4, to443, 'anything else'],
        ['drop', POD_4, '10.0.1.1', query, 'the address of an endpoint'],
      ]
      for (const [verdict, source, target, segment, reason] of rows) {
        assert.equal(bench.judgeAt(2, frame({ source, target }, segment)), verdict, reason)
      }
      datapath.fences.set([])
      assert.equal(bench.judgeAt(2, frame({ source: '10.0.1.7', target: PEER_4 }, to443)), 'pass')
    } finally {
      bench.close()
    }
  })

  test('start without the privilege names the remedy', () => {
    const source = fileURLToPath(new URL('../../../src', import.meta.url))
    const program = `
      import { NftablesDatapath } from '${source}/datapath/nftables/adapter.ts'
      import { loadNetlink, loadPosix } from '${source}/native/native.ts'
      const sizes = { prefixesMax: 8, policyEntriesMax: 8 }
      try {
        new NftablesDatapath({ netlink: loadNetlink(), posix: loadPosix(), ...sizes }).start()
      } catch (error) {
        console.log(String(error))
      }`
    const dropped = ['--bounding-set', '-net_admin', '--inh-caps', '-net_admin']
    const node = [process.execPath, '--import', 'tsx', '--input-type=module', '-e', program]
    const { stdout, stderr } = spawnSync('setpriv', [...dropped, ...node], { encoding: 'utf8' })
    assert.match(
      stdout,
      /^UnavailableError: Cannot watch nftables rules: EPERM: run as root or with CAP_NET_ADMIN/,
      stderr,
    )
  })
})

describe(
  'nftables datapath at an own interface',
  { skip: nftablesMaker.unavailable ?? false },
  () => {
    test('packets of a process in the namespace are judged, dropped and reported', async () => {
      const bench = makeNftablesBench()
      const socket = createSocket('udp4')
      try {
        const { datapath } = bench
        execFileSync('ip', ['addr', 'add', `${POD_4}/32`, 'dev', 'uplink'])
        execFileSync('ip', ['addr', 'add', `${POD_6}/128`, 'dev', 'uplink'])
        settle(bench, [policy({ identity: LEARNED, protocol: 17, port: 443, rule: 7 })], {
          hook: { kind: 'interface', name: 'uplink', side: 'egress' },
        })
        await new Promise<void>((done) => socket.bind(0, POD_4, done))
        const send = (port: number, target: string): Promise<string> =>
          new Promise((done) =>
            socket.send('x', port, target, (error) => done(error?.message ?? '')),
          )
        assert.equal(await send(443, PEER_4), '')
        assert.match(await send(444, PEER_4), /EPERM/)
        assert.match(await send(443, OTHER_4), /EPERM/)
        const counters = datapath.reports.counters()
        assert.deepEqual([counters['verdict_allow'], counters['drop_policy']], [1, 2])
        const events: DatapathEvent[] = []
        datapath.reports.drain(10, (event) => events.push(event))
        assert.deepEqual(
          events.map(({ endpoint: id, peer, port, identity, verdict }) =>
            [id, peer.subarray(0, 4).join('.'), port, identity, verdict].join(' '),
          ),
          [`${POD} ${PEER_4} 444 ${LEARNED} deny`, `${POD} ${OTHER_4} 443 9 deny`],
        )
        datapath.mode.set('audit')
        assert.equal(await send(444, PEER_4), '')
      } finally {
        socket.close()
        bench.close()
      }
    })
  },
)
