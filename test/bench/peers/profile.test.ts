// Stages of a profile, from perf's samples and from Node's own.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseScript, sharesOf, stageOf, symbolOf } from './perf.ts'
import { fileOf, folderOf, functionOf, stagesOf, type CpuProfile } from './profile.ts'

test('stagesOf sums self time in the window, without idle time', () => {
  const node = (id: number, functionName: string, url: string) => {
    return { id, callFrame: { functionName, url, lineNumber: 4 } }
  }
  const file = 'file:///x/dist/src/proxy/upstream.js'
  const profile: CpuProfile = {
    startTime: 7,
    nodes: [node(1, 'read', file), node(2, '(idle)', ''), node(3, '(garbage collector)', '')],
    samples: [1, 1, 3, 2, 1, 1],
    timeDeltas: [0, 100, 100, 50, 500, 50],
  }
  const stages = stagesOf(profile, [100, 800], fileOf)
  assert.deepEqual(stages, [
    { name: 'proxy/upstream.js', share: 150 / 200 },
    { name: '(garbage collector)', share: 50 / 200 },
  ])
  const [first] = profile.nodes
  assert.ok(first !== undefined)
  assert.equal(folderOf(first), 'proxy')
  assert.equal(functionOf(first), 'proxy/upstream.js:5 read')
})

const SCRIPT = `
        ffffffff81000001 udp_sendmsg+0x10 ([kernel.kallsyms])
        ffffffff81000002 __x64_sys_sendmmsg+0x15 ([kernel.kallsyms])
            7f0000000001 send_batch+0x1 (/x/build/Release/udp.node)

            7f0000000002 JS:*#record file:///x/dist/src/dns/answer.js:124:10+0x20 (/x/perf-1.map)
            7f0000000003 JS:*settle file:///x/dist/src/proxy/pipeline.js:9:3+0x1 (/x/perf-1.map)

        ffffffff81000003 bpf_prog_9f_ng_tc_to+0x1 (bpf_prog_9f_ng_tc_to)
        ffffffff81000002 __x64_sys_sendmmsg+0x15 ([kernel.kallsyms])

        ffffffff81000004 sysvec_apic_timer_interrupt+0x1 ([kernel.kallsyms])

            7f0000000005 send_batch+0x1 (/x/build/Release/udp.node)

                  9f0001 v8::internal::Scavenger::Process(v8::internal::Local*)+0x2 (/usr/bin/node)

                  9f0002 v8::internal::Runtime_X(int, v8::internal::Isolate*)+0x2 (/usr/bin/node)

            7f0000000006 JS:*main file:///x/dist/src/main.js:1:1+0x1 (/x/perf-1.map)
`

test('stageOf finds the stage of every sample that perf prints', () => {
  const samples = parseScript(SCRIPT)
  assert.deepEqual(samples.map(stageOf), [
    'kernel: sendmmsg',
    'src/dns',
    'eBPF programs',
    'kernel: other',
    'addon udp.node',
    'garbage collector',
    'node: runtime',
    'src/',
  ])
  assert.equal(symbolOf(samples[1] ?? []), 'src/dns/answer.js:124 #record')
  assert.deepEqual(
    sharesOf(samples, (frames) => String(frames.length)),
    [
      { name: '1', share: 5 / 8 },
      { name: '2', share: 2 / 8 },
      { name: '3', share: 1 / 8 },
    ],
  )
})
