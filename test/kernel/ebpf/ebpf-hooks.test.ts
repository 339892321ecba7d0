// The interfaces and cgroups to which the eBPF datapath attaches: they appear, disappear and are made again, and have filters of other
// programs and real traffic. Runs in a network namespace of this process.

import assert from 'node:assert/strict'
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, rmdirSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { endpointId, generation } from '../../../src/core/ids.ts'
import { linkDirectory } from '../../../src/datapath/ebpf/maps/bpffs.ts'
import { cgroupMount } from '../../../src/native/cgroup-mount.ts'
import { batch, commit, endpoint, POD, policy, prefix } from '../../contract/bench.ts'
import { ebpfMaker, ip, makeEbpfBench, type EbpfBench } from '../../contract/ebpf-bench.ts'

const skip = ebpfMaker.unavailable ?? false

async function withBench(run: (bench: EbpfBench) => void | Promise<void>): Promise<void> {
  const bench = makeEbpfBench()
  try {
    await run(bench)
  } finally {
    bench.close()
    spawnSync('ip', ['link', 'del', 'pod9'], { stdio: 'ignore' })
  }
}

function filters(device: string): readonly string[] {
  return ['ingress', 'egress'].flatMap((side) => {
    const text = execFileSync('tc', ['filter', 'show', 'dev', device, side], { encoding: 'utf8' })
    return [...text.matchAll(/ng_tc_\w+(?=:\[)|u32 .*flowid/g)].map(([found]) => `${side} ${found}`)
  })
}

async function succeeds(command: string, args: readonly string[]): Promise<boolean> {
  const child = spawn(command, args, { stdio: 'ignore' })
  await once(child, 'exit')
  return child.exitCode === 0
}

const onPod9 = endpoint({ hook: { kind: 'interface', name: 'pod9', side: 'ingress' } })
const addPod9 = (): void => ip('link', 'add', 'pod9', 'type', 'veth', 'peer', 'pod9p')
const deletePod9 = (): void => ip('link', 'del', 'pod9')

describe('ebpf hooks', { skip }, () => {
  test('refresh attaches an interface when it appears and when it is made again, and notices its removal', () =>
    withBench(({ datapath }) => {
      assert.deepEqual(commit(datapath, { endpointUpserts: [onPod9] }), [])
      assert.deepEqual(datapath.hooks.stateOf(POD), {
        kind: 'waiting',
        reason: 'interface pod9 is not there',
      })
      assert.deepEqual(datapath.hooks.refresh(), [])
      addPod9()
      const first = datapath.hooks.keyOf(onPod9.hook)
      assert.deepEqual(datapath.hooks.refresh(), [POD])
      assert.deepEqual(datapath.hooks.stateOf(POD), { kind: 'attached' })
      assert.deepEqual(filters('pod9'), ['ingress ng_tc_from', 'egress ng_tc_to'])
      assert.deepEqual(datapath.hooks.refresh(), [], 'no news')
      deletePod9()
      addPod9()
      assert.deepEqual(
        datapath.hooks.refresh(),
        [POD],
        'removed and made again between two refreshes',
      )
      const second = datapath.hooks.keyOf(onPod9.hook)
      assert.notEqual(second, first)
      assert.deepEqual(datapath.hooks.stateOf(POD), {
        kind: 'waiting',
        reason: `${second} was made again`,
        remade: true,
      })
      assert.deepEqual(filters('pod9'), ['ingress ng_tc_from', 'egress ng_tc_to'], 'closed at once')
      assert.deepEqual(datapath.dump().endpoints, [], 'the endpoint of the old interface is gone')
      assert.deepEqual(datapath.fences.names, ['pod9'])
      assert.deepEqual(datapath.hooks.refresh(), [], 'reported once')
      commit(datapath, { endpointUpserts: [{ ...onPod9, generation: generation(2) }] })
      assert.deepEqual(datapath.hooks.stateOf(POD), { kind: 'attached' })
      assert.deepEqual(datapath.fences.names, [])
      assert.equal(datapath.dump().endpoints.length, 1)
      deletePod9()
      assert.deepEqual(datapath.hooks.refresh(), [POD])
      assert.equal(datapath.hooks.stateOf(POD).kind, 'waiting')
      assert.deepEqual(datapath.dump().endpoints, [])
    }))

  test('refresh follows a renamed interface', () =>
    withBench(({ datapath }) => {
      addPod9()
      commit(datapath, { endpointUpserts: [onPod9] })
      ip('link', 'set', 'pod9', 'name', 'other9')
      assert.deepEqual(datapath.hooks.refresh(), [POD])
      assert.equal(datapath.hooks.stateOf(POD).kind, 'waiting')
      assert.deepEqual(filters('other9'), [])
      ip('link', 'del', 'other9')
    }))

  test('refresh costs little when there is no news', () =>
    withBench(({ datapath }) => {
      const rounds = 2000
      const started = process.cpuUsage()
      for (let i = 0; i < rounds; i++) datapath.hooks.refresh()
      const { user, system } = process.cpuUsage(started)
      assert.ok((user + system) / rounds < 200, 'less than 200 us each')
    }))

  test('side egress attaches the other way round', () =>
    withBench(({ datapath }) => {
      addPod9()
      const hook = { kind: 'interface', name: 'pod9', side: 'egress' } as const
      commit(datapath, { endpointUpserts: [endpoint({ hook })] })
      assert.deepEqual(filters('pod9'), ['ingress ng_tc_to', 'egress ng_tc_from'])
      deletePod9()
    }))

  test('attach leaves filters of other programs, and names a filter that blocks its own', () =>
    withBench(({ datapath }) => {
      addPod9()
      const other = (priority: string): void => {
        const filter = ['filter', 'add', 'dev', 'pod9', 'ingress', 'pref', priority]
        const rest = ['protocol', 'ip', 'u32', 'match', 'u32', '0', '0', 'classid', '1:1']
        execFileSync('tc', [...filter, ...rest], { stdio: 'pipe' })
      }
      execFileSync('tc', ['qdisc', 'add', 'dev', 'pod9', 'clsact'])
      other('10')
      const before = filters('pod9')
      assert.equal(before.length, 1)
      commit(datapath, { endpointUpserts: [onPod9] })
      assert.equal(filters('pod9').length, 3)
      commit(datapath, { endpointRemovals: [POD] })
      assert.deepEqual(filters('pod9'), before)
      other('1')
      const [failure] = commit(datapath, { endpointUpserts: [onPod9] })
      assert.equal(failure?.section, 'endpoint')
      assert.equal(datapath.hooks.stateOf(POD).kind, 'failed')
      deletePod9()
    }))

  test('the newest of two endpoints has the hook, and the other reports it', () =>
    withBench(({ datapath }) => {
      addPod9()
      const second = endpointId(6)
      commit(datapath, { endpointUpserts: [onPod9, { ...onPod9, id: second }] })
      assert.deepEqual(datapath.hooks.stateOf(second), { kind: 'attached' })
      assert.deepEqual(datapath.hooks.stateOf(POD), {
        kind: 'failed',
        reason: 'its hook serves endpoint 6 now',
      })
      assert.deepEqual(datapath.hooks.refresh(), [], 'the endpoints do not take turns')
      assert.equal(datapath.dump().endpoints.length, 1)
      deletePod9()
    }))

  test('refresh attaches a cgroup when it appears and when it is made again', () =>
    withBench(({ datapath, pinPath }) => {
      const name = `namegate-test-late-${process.pid}`
      const folder = join(cgroupMount() ?? '', name)
      const links = (): string =>
        execFileSync('ls', [linkDirectory(pinPath)], { encoding: 'utf8' }).trim()
      commit(datapath, {
        endpointUpserts: [endpoint({ hook: { kind: 'cgroup', path: name }, sources: [] })],
      })
      assert.equal(datapath.hooks.stateOf(POD).kind, 'waiting')
      mkdirSync(folder)
      assert.deepEqual(datapath.hooks.refresh(), [POD])
      assert.deepEqual(datapath.hooks.stateOf(POD), { kind: 'attached' })
      const first = links()
      assert.match(first, /^cgroup_\d+_from\ncgroup_\d+_to$/)
      rmdirSync(folder)
      mkdirSync(folder)
      assert.deepEqual(datapath.hooks.refresh(), [POD])
      assert.notEqual(links(), first)
      assert.equal(links().split('\n').length, 2, 'no link to the old cgroup')
      assert.equal(
        datapath.hooks.stateOf(POD).kind,
        'waiting',
        'the endpoint of the old cgroup is gone',
      )
      assert.deepEqual(datapath.dump().endpoints, [])
      const entry = endpoint({ hook: { kind: 'cgroup', path: name }, sources: [] })
      commit(datapath, { endpointUpserts: [{ ...entry, generation: generation(2) }] })
      assert.deepEqual(datapath.hooks.stateOf(POD), { kind: 'attached' })
      rmdirSync(folder)
      assert.deepEqual(datapath.hooks.refresh(), [POD])
      assert.equal(links(), '')
    }))

  test('packets of a pod are dropped and allowed by the maps, also after the process has stopped', () =>
    withBench(async (bench) => {
      addPod9()
      const pod = spawn('unshare', ['--net', 'sh', '-c', 'echo up; exec sleep 60'])
      await once(pod.stdout, 'data')
      const server = createServer((socket) => socket.destroy())
      try {
        const inside = (...args: readonly string[]): number =>
          spawnSync('nsenter', [`--net=/proc/${pod.pid}/ns/net`, ...args]).status ?? -1
        ip('link', 'set', 'pod9p', 'netns', String(pod.pid))
        ip('addr', 'add', '10.0.1.1/24', 'dev', 'pod9')
        ip('link', 'set', 'pod9', 'up')
        inside('ip', 'addr', 'add', '10.0.1.5/24', 'dev', 'pod9p')
        inside('ip', 'link', 'set', 'pod9p', 'up')
        await once(server.listen(8080, '10.0.1.1'), 'listening')
        const connect = async (): Promise<boolean> => {
          const shell = 'exec 3<>/dev/tcp/10.0.1.1/8080'
          const args = [`--net=/proc/${pod.pid}/ns/net`, 'timeout', '0.7', 'bash', '-c', shell]
          return succeeds('nsenter', args)
        }
        assert.equal(await connect(), true, 'before the programs are attached')
        commit(bench.datapath, { endpointUpserts: [onPod9] })
        assert.equal(await connect(), false, 'default deny')
        commit(bench.datapath, {
          policyUpserts: [policy({ identity: 2 ** 24, protocol: 6, port: 8080 })],
          prefixUpserts: batch([['10.0.1.1/32', 2 ** 24, 1]]),
        })
        assert.equal(await connect(), true, 'the address is known')
        bench.datapath.stop({ leaveEnforcing: true })
        assert.equal(await connect(), true, 'without a process')
        bench.restart()
        commit(bench.datapath, { prefixRemovals: batch([['10.0.1.1/32', 2 ** 24, 1]]) })
        assert.equal(await connect(), false, 'after a restart')
        bench.datapath.mode.set('bypass')
        assert.equal(await connect(), true, 'break glass')
      } finally {
        pod.kill('SIGKILL')
        server.close()
      }
    }))

  test('packets of a cgroup are dropped and allowed by the maps, and those of other processes always pass', () =>
    withBench(async (bench) => {
      ip('link', 'set', 'lo', 'up')
      const name = `namegate-test-traffic-${process.pid}`
      const folder = join(cgroupMount() ?? '', name)
      mkdirSync(folder)
      const server = createServer((socket) => socket.destroy())
      try {
        await once(server.listen(8081, '127.0.0.1'), 'listening')
        const connect = async (where: 'inside' | 'outside'): Promise<boolean> => {
          const join = where === 'inside' ? `echo $$ > ${folder}/cgroup.procs; ` : ''
          const shell = `${join}exec timeout 0.7 bash -c 'exec 3<>/dev/tcp/127.0.0.1/8081'`
          return succeeds('bash', ['-c', shell])
        }
        const entry = endpoint({ hook: { kind: 'cgroup', path: name }, sources: [] })
        commit(bench.datapath, { endpointUpserts: [entry] })
        assert.equal(await connect('inside'), false, 'default deny')
        assert.equal(await connect('outside'), true, 'no endpoint')
        commit(bench.datapath, {
          policyUpserts: [policy({ identity: 1, protocol: 6, port: 8081 })],
        })
        assert.equal(await connect('inside'), true, 'loopback has the class host')
        bench.datapath.stop({ leaveEnforcing: true })
        assert.equal(await connect('inside'), true, 'without a process')
        bench.restart()
        assert.deepEqual(commit(bench.datapath, { endpointUpserts: [entry] }), [])
        assert.equal(await connect('inside'), true, 'the new process took the link over')
        commit(bench.datapath, { policyUpserts: [policy({ verdict: 'deny' })] })
        assert.equal(await connect('inside'), false, 'the new process changed the policy')
        commit(bench.datapath, { endpointRemovals: [POD] })
        assert.equal(await connect('inside'), true, 'the endpoint is removed')
      } finally {
        server.close()
        rmdirSync(folder)
      }
    }))

  test('an endpoint without hook is unfenced, and one with an unusable hook reports the reason', () =>
    withBench(({ datapath }) => {
      const rows = [
        [{ kind: 'none' }, { kind: 'unfenced' }],
        [
          { kind: 'cgroup', path: '/' },
          { kind: 'failed', reason: 'the root cgroup cannot be an endpoint' },
        ],
      ] as const
      for (const [hook, state] of rows) {
        commit(datapath, { endpointUpserts: [endpoint({ hook, sources: [prefix('10.0.0.1')] })] })
        assert.deepEqual(datapath.hooks.stateOf(POD), state)
        assert.deepEqual(datapath.dump().endpoints, [])
      }
    }))
})
