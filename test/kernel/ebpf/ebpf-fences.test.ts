// Fences on interfaces that match a pattern and belong to no endpoint: the packets that pass, the change between fence and endpoint, and
// the reports about interfaces. Runs in a network namespace of this process.

import assert from 'node:assert/strict'
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { generation } from '../../../src/core/ids.ts'
import { ACK, arp, discovery, ethernet, frame, SYN, tcp, udp } from '../../support/packets.ts'
import {
  batch,
  commit,
  endpoint,
  listener,
  PEER_4,
  POD,
  POD_4,
  policy,
} from '../../contract/bench.ts'
import { ebpfMaker, ip, makeEbpfBench, type EbpfBench } from '../../contract/ebpf-bench.ts'

const skip = ebpfMaker.unavailable ?? false

async function withBench(run: (bench: EbpfBench) => void | Promise<void>): Promise<void> {
  const bench = makeEbpfBench()
  try {
    await run(bench)
  } finally {
    bench.close()
    for (const name of ['pod8', 'pod9', 'other9']) {
      spawnSync('ip', ['link', 'del', name], { stdio: 'ignore' })
    }
  }
}

function filters(device: string): readonly string[] {
  return ['ingress', 'egress'].flatMap((side) => {
    const text = execFileSync('tc', ['filter', 'show', 'dev', device, side], { encoding: 'utf8' })
    return [...text.matchAll(/ng_tc_\w+(?=:\[)/g)].map(([found]) => `${side} ${found}`)
  })
}

const FENCED = ['ingress ng_tc_from', 'egress ng_tc_to']
const onPod9 = endpoint({ hook: { kind: 'interface', name: 'pod9', side: 'ingress' } })

function addLink(name: string): void {
  ip('link', 'add', name, 'type', 'veth', 'peer', `${name}p`)
}

async function until(check: () => boolean, what: string): Promise<number> {
  const began = performance.now()
  while (!check()) {
    if (performance.now() - began > 5000) throw new Error(`expected ${what} in 5 s`)
    await sleep(1)
  }
  return performance.now() - began
}

describe('ebpf fences', { skip }, () => {
  test('fence attaches the programs to interfaces that match and have no endpoint, and removes them again', () =>
    withBench(({ datapath }) => {
      addLink('pod8')
      addLink('other9')
      datapath.fences.set(['pod*'])
      assert.deepEqual(datapath.fences.names, ['pod8', 'pod8p'])
      assert.deepEqual([filters('pod8'), filters('other9')], [FENCED, []])
      addLink('pod9')
      datapath.hooks.refresh()
      assert.deepEqual(filters('pod9'), FENCED, 'an interface that appears later')
      assert.deepEqual(datapath.dump().endpoints, [], 'a fence is no endpoint')
      ip('link', 'set', 'pod9', 'name', 'gone9')
      datapath.hooks.refresh()
      assert.deepEqual(filters('gone9'), [], 'a name that matches no more')
      ip('link', 'set', 'gone9', 'name', 'pod9')
      datapath.hooks.refresh()
      assert.deepEqual(filters('pod9'), FENCED, 'a name that matches again')
      ip('link', 'del', 'pod9')
      datapath.hooks.refresh()
      assert.deepEqual(datapath.fences.names, ['pod8', 'pod8p'])
      datapath.fences.set(['other9'])
      assert.deepEqual([filters('pod8'), filters('other9')], [[], FENCED])
      datapath.fences.set([])
      assert.deepEqual([filters('other9'), datapath.fences.names], [[], []])
    }))

  test('fence leaves the loopback interface alone', () =>
    withBench(({ datapath }) => {
      datapath.fences.set(['lo', 'l*'])
      assert.ok(!datapath.fences.names.includes('lo'))
      assert.deepEqual(filters('lo'), [])
    }))

  test('a fenced interface can send DNS to listeners and intercepted DNS, and nothing else', () =>
    withBench(({ datapath, posix }) => {
      addLink('pod9')
      datapath.fences.set(['pod9'])
      datapath.exceptions.setListeners([listener('10.0.1.1', 53)])
      const ifindex = posix.ifIndex('pod9')
      datapath.exceptions.setIntercepted([{ ifindex, families: { 4: true, 6: false } }])
      commit(datapath, {
        policyUpserts: [policy({}), policy({ endpoint: 0 as typeof POD })],
        prefixUpserts: batch([
          ['10.0.1.0/24', 2 ** 24, 9],
          ['10.0.1.7/32', 2 ** 24 + 1, 11],
          ['10.0.1.1/32', 1, 1],
        ]),
      })
      const query = udp({ from: 40000, to: 53 })
      const hello = tcp({ from: 40000, to: 443 }, SYN)
      const out = { source: POD_4, target: PEER_4 }
      const rows: readonly (readonly ['pass' | 'drop', Uint8Array, string])[] = [
        ['pass', frame({ source: POD_4, target: '10.0.1.1' }, query), 'a listener'],
        ['pass', frame(out, query), 'intercepted DNS'],
        ['pass', frame(out, tcp({ from: 40000, to: 53 }, SYN)), 'over TCP'],
        ['drop', frame({ source: 'fd00::5', target: '2001:db8::1' }, query), 'not in IPv6'],
        ['drop', frame({ ...out, source: '10.0.1.7' }, query), 'from an address of an endpoint'],
        ['drop', frame({ ...out, source: '10.0.1.1' }, query), 'from an address of the node'],
        ['drop', frame(out, hello), 'anything else, whatever policy says'],
        ['drop', frame(out, udp({ from: 68, to: 67 })), 'DHCP'],
        ['pass', arp(), 'ARP'],
        [
          'pass',
          frame(
            { source: '::', target: 'ff02::1:ff00:5', hopLimit: 255 },
            discovery(135, 'fd00::5'),
          ),
          'discovery',
        ],
        ['drop', ethernet(0x8847, new Uint8Array(20)), 'neither IP nor ARP'],
      ]
      for (const [verdict, octets, reason] of rows) {
        assert.equal(datapath.judgeAt(ifindex, 'from', octets), verdict, reason)
      }
      const back = frame({ source: PEER_4, target: POD_4 }, tcp({ from: 443, to: 40000 }, SYN))
      assert.equal(datapath.judgeAt(ifindex, 'to', back), 'pass')
      const reply = frame(out, tcp({ from: 40000, to: 443 }, ACK))
      assert.equal(datapath.judgeAt(ifindex, 'from', reply), 'drop', 'no connection is recorded')
      const { drop_no_endpoint: dropped, drop_source: forged } = datapath.reports.counters()
      assert.deepEqual([dropped, forged], [4, 2])
      datapath.mode.set('audit')
      assert.equal(datapath.judgeAt(ifindex, 'from', frame(out, hello)), 'pass', 'mode audit')
      datapath.mode.set('bypass')
      assert.equal(datapath.judgeAt(ifindex, 'from', frame(out, hello)), 'pass', 'mode bypass')
    }))

  test('fence and endpoint replace each other without a gap', () =>
    withBench(({ datapath, posix }) => {
      addLink('pod9')
      datapath.fences.set(['pod9'])
      const ifindex = posix.ifIndex('pod9')
      const octets = frame({ source: POD_4, target: PEER_4 }, tcp({ from: 40000, to: 443 }, SYN))
      const judge = (): string => datapath.judgeAt(ifindex, 'from', octets)
      assert.equal(judge(), 'drop')
      commit(datapath, { policyUpserts: [policy({})], endpointUpserts: [onPod9] })
      assert.deepEqual([judge(), datapath.fences.names], ['pass', []], 'no fence')
      commit(datapath, { endpointRemovals: [POD] })
      assert.deepEqual([judge(), datapath.fences.names], ['drop', ['pod9']], 'fenced again')
      assert.deepEqual(filters('pod9'), FENCED)
      commit(datapath, { endpointUpserts: [onPod9] })
      ip('link', 'del', 'pod9')
      addLink('pod9')
      assert.deepEqual(
        datapath.hooks.refresh(),
        [POD],
        'made again: fenced until another generation',
      )
      assert.deepEqual(datapath.fences.names, ['pod9'])
      commit(datapath, { endpointUpserts: [{ ...onPod9, generation: generation(2) }] })
      assert.deepEqual(datapath.fences.names, [])
    }))

  test('an interface that was made again is closed for the old generation of its endpoint, without any pattern', () =>
    withBench(({ datapath, posix }) => {
      addLink('pod9')
      commit(datapath, { policyUpserts: [policy({})], endpointUpserts: [onPod9] })
      ip('link', 'del', 'pod9')
      addLink('pod9')
      const ifindex = posix.ifIndex('pod9')
      const octets = frame({ source: POD_4, target: PEER_4 }, tcp({ from: 40000, to: 443 }, SYN))
      const judge = (): string => datapath.judgeAt(ifindex, 'from', octets)
      commit(datapath, { endpointUpserts: [{ ...onPod9, audit: true }] })
      assert.equal(judge(), 'drop', 'upserted in the old generation')
      assert.deepEqual(datapath.hooks.refresh(), [POD], 'refresh still reports it')
      assert.equal(judge(), 'drop')
      commit(datapath, { endpointRemovals: [POD] })
      assert.deepEqual(
        [datapath.fences.names, filters('pod9')],
        [[], []],
        'neither fence nor programs remain',
      )
    }))

  test('fence outlives the process, until another process changes it', () =>
    withBench((bench) => {
      addLink('pod9')
      bench.datapath.fences.set(['pod9'])
      bench.restart()
      assert.deepEqual(filters('pod9'), FENCED)
      assert.deepEqual(bench.datapath.dump().endpoints, [])
      bench.datapath.fences.set(['pod9'])
      assert.deepEqual(bench.datapath.fences.names, ['pod9'])
      bench.restart()
      bench.datapath.fences.set([])
      assert.deepEqual(filters('pod9'), [])
      bench.datapath.fences.set(['pod9'])
      bench.datapath.stop({ leaveEnforcing: false })
      assert.deepEqual(filters('pod9'), [], 'detach removes fences, too')
      bench.restart()
    }))

  for (const why of ['a pattern', 'an endpoint'] as const) {
    test(`the gate drops packets of an interface that ${why} waits for, before a refresh`, (t) =>
      withBench(async ({ datapath }) => {
        if (datapath.gateState().kind !== 'attached') {
          t.skip('this kernel has no netfilter programs (6.4)')
          return
        }
        if (why === 'a pattern') datapath.fences.set(['pod*'])
        else commit(datapath, { endpointUpserts: [onPod9] })
        datapath.hooks.refresh()
        const pod = spawn('unshare', ['--net', 'sh', '-c', 'echo up; exec sleep 60'])
        await once(pod.stdout, 'data')
        const server = createServer((socket) => socket.destroy())
        try {
          const net = `--net=/proc/${pod.pid}/ns/net`
          const inside = (...args: readonly string[]): number =>
            spawnSync('nsenter', [net, ...args]).status ?? -1
          addLink('pod9')
          ip('link', 'set', 'pod9p', 'netns', String(pod.pid))
          ip('addr', 'add', '10.0.9.1/24', 'dev', 'pod9')
          ip('link', 'set', 'pod9', 'up')
          inside('ip', 'addr', 'add', '10.0.9.5/24', 'dev', 'pod9p')
          inside('ip', 'link', 'set', 'pod9p', 'up')
          await once(server.listen(8080, '10.0.9.1'), 'listening')
          // Until the kernel has the neighbour's address, it sends no packet, and it can give up while the gate drops.
          const connects = async (seconds: number): Promise<boolean> => {
            const tried = 'timeout 1.5 bash -c "exec 3<>/dev/tcp/10.0.9.1/8080"'
            const shell = `until ${tried}; do sleep 0.1; done`
            const child = spawn('nsenter', [net, 'timeout', String(seconds), 'sh', '-c', shell])
            await once(child, 'exit')
            return child.exitCode === 0
          }
          assert.deepEqual(filters('pod9'), [], 'no program is attached yet')
          assert.equal(await connects(1.5), false)
          assert.ok((datapath.reports.counters()['drop_no_endpoint'] ?? 0) > 0, 'counted')
          if (why === 'a pattern') datapath.fences.set([])
          else commit(datapath, { endpointRemovals: [POD] })
          assert.equal(await connects(20), true, 'no pattern or endpoint names it')
        } finally {
          pod.kill('SIGKILL')
          server.close()
        }
      }))
  }

  test('onLinkNews reports an interface when it appears, without a refresh', (t) =>
    withBench(async ({ datapath }) => {
      datapath.fences.set(['pod9'])
      const waited: number[] = []
      assert.equal(
        datapath.hooks.watch(() => datapath.hooks.refresh()),
        true,
      )
      for (let i = 0; i < 9; i++) {
        addLink('pod9')
        waited.push(await until(() => datapath.fences.names.includes('pod9'), 'a fence'))
        ip('link', 'del', 'pod9')
        await until(() => datapath.fences.names.length === 0, 'no fence')
      }
      const sorted = waited.toSorted((a, b) => a - b)
      t.diagnostic(
        `fenced ${sorted.map((each) => each.toFixed(1)).join(', ')} ms after ip link add`,
      )
    }))
})
