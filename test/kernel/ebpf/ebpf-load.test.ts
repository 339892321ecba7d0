// The programs that a process of the eBPF datapath loads, and their work for the kernel's verifier. The kernel reports both in
// /proc/self/fdinfo.

import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { kernelVersion } from '../../../src/cli/up/network.ts'
import { endpointId } from '../../../src/core/ids.ts'
import { CgroupPrograms } from '../../../src/datapath/ebpf/hooks/cgroup-programs.ts'
import { loadProgram, readKernelObject } from '../../../src/datapath/ebpf/program.ts'
import { frame, SYN, tcp } from '../../support/packets.ts'
import {
  commit,
  endpoint,
  LEARNED,
  PEER_4,
  POD,
  POD_4,
  policy,
  settle,
  type Bench,
} from '../../contract/bench.ts'
import { ebpfMaker, withEbpfBench } from '../../contract/ebpf-bench.ts'

const skip = ebpfMaker.unavailable ?? false
const TC = 3
const CGROUP = 8
const HELLO = frame({ source: POD_4, target: PEER_4 }, tcp({ from: 40000, to: 443 }, SYN))

/**
 * Bounds of the instructions that the verifier follows. On kernel 6.18 it follows 22,209 and 25,882, on kernel 6.1 56,671 and
 * 37,788: verifiers of older kernels follow more paths. `older`: the bound before 6.18.
 */
const BOUNDS = [
  {
    type: TC,
    most: 34_000,
    older: 85_000,
    reason: 'each start of a daemon and each take-over waits for it',
  },
  {
    type: CGROUP,
    most: 40_000,
    older: 57_000,
    reason: 'the first endpoint with a cgroup waits for it',
  },
]

interface OpenProgram {
  readonly type: number
  /** 0 on kernels before 5.16, which do not report it. */
  readonly verified: number
}

/** The programs whose descriptors this process has. */
function openPrograms(): readonly OpenProgram[] {
  const found: OpenProgram[] = []
  for (const fd of readdirSync('/proc/self/fdinfo')) {
    const text = infoOf(fd)
    const type = /^prog_type:\s*(\d+)$/m.exec(text)?.[1]
    const verified = Number(/^verified_insns:\s*(\d+)$/m.exec(text)?.[1] ?? 0)
    if (type !== undefined) found.push({ type: Number(type), verified })
  }
  return found
}

function infoOf(fd: string): string {
  try {
    return readFileSync(`/proc/self/fdinfo/${fd}`, 'utf8')
  } catch {
    return '' // The descriptor of the listing itself.
  }
}

function numberOf(wanted: number): number {
  return openPrograms().filter(({ type }) => type === wanted).length
}

function addCgroup(bench: Bench): void {
  settle(bench, [], { hook: bench.cgroupHook(), sources: [] })
}

describe('ebpf programs', { skip }, () => {
  test('start and an endpoint on an interface load the programs for interfaces only', () =>
    withEbpfBench((bench) => {
      settle(bench, [])
      assert.deepEqual([numberOf(TC), numberOf(CGROUP)], [2, 0])
    }))

  test('commit loads the programs for cgroups once, even before the cgroup exists', () =>
    withEbpfBench((bench) => {
      for (const id of [7, 8]) {
        const hook = { kind: 'cgroup', path: `namegate-absent-${process.pid}` } as const
        commit(bench.datapath, {
          endpointUpserts: [endpoint({ id: endpointId(id), hook, sources: [] })],
        })
        assert.deepEqual([numberOf(TC), numberOf(CGROUP)], [2, 2])
        assert.equal(bench.datapath.hooks.stateOf(endpointId(id)).kind, 'waiting')
      }
    }))

  test('start after a restart replaces the programs on a cgroup when its endpoint is upserted', () =>
    withEbpfBench((bench) => {
      addCgroup(bench)
      bench.restart()
      assert.deepEqual([numberOf(TC), numberOf(CGROUP)], [2, 0])
      addCgroup(bench)
      assert.deepEqual([numberOf(TC), numberOf(CGROUP)], [2, 2])
      assert.equal(bench.datapath.hooks.stateOf(POD).kind, 'attached')
      assert.equal(bench.judge(POD, 'from', HELLO), 'drop')
      commit(bench.datapath, { policyUpserts: [policy({ identity: LEARNED })] })
      assert.equal(
        bench.judge(POD, 'from', HELLO),
        'pass',
        'the new programs use the maps of the old ones',
      )
    }))

  test('programs stay below the bounds of the verifier', (t) =>
    withEbpfBench((bench) => {
      addCgroup(bench)
      const programs = openPrograms()
      const [major, minor] = kernelVersion()
      const isOlder = major < 6 || (major === 6 && minor < 18)
      for (const { type, most, older, reason } of BOUNDS) {
        const verified = programs
          .filter((program) => program.type === type)
          .reduce((sum, program) => sum + program.verified, 0)
        t.diagnostic(`programs of type ${type}: ${verified} instructions`)
        assert.ok(verified <= (isOlder ? older : most), reason)
      }
    }))

  test('stop closes all programs', () => {
    const before = openPrograms().length
    withEbpfBench(addCgroup)
    assert.equal(openPrograms().length, before)
  })

  test('CgroupPrograms reports why the kernel refuses the programs, and tries again', () =>
    withEbpfBench(({ bpf, posix, pinPath, datapath }) => {
      datapath.stop({ leaveEnforcing: false })
      const file = readKernelObject()
      const object = loadProgram(bpf, posix, pinPath, {}, file)
      const broken = Uint8Array.from(file)
      const programs = new CgroupPrograms({ bpf, pinPath, file: broken, object })
      broken.fill(0, 0, 64)
      programs.prepare()
      const reason = programs.descriptors()
      assert.ok(typeof reason === 'string')
      assert.match(reason, /programs for cgroups cannot be loaded: E/)
      broken.set(file.subarray(0, 64))
      programs.prepare()
      assert.equal(typeof programs.descriptors(), 'object')
      programs.close()
      bpf.unload(object.handle)
    }))
})
