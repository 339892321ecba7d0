// The built sidecar of deploy/kubernetes/overlays/sidecar/sidecar.yaml, with its capabilities, in a pod's network namespace, which it fences
// with nftables: resident memory, and CPU without queries.

import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { DNS_4, podLab } from '../support/labs/lab-pod.ts'
import { SidecarPod } from '../support/labs/sidecar.ts'
import { runBench, type Figure } from './support/bench.ts'
import { BuiltTree } from './support/built-tree.ts'

const LIMIT_MB = 90
const LIMIT_PERCENT = 0.2
/** Until the memory of the start is returned, and policy files count as settled. */
const SETTLE_MS = 15_000
const IDLE_MS = 40_000

/** Nanoseconds on a CPU, all threads (proc(5), schedstat). */
function cpuOf(pid: number): number {
  const tasks = readdirSync(`/proc/${pid}/task`)
  const times = tasks.map((id) => readFileSync(`/proc/${pid}/task/${id}/schedstat`, 'utf8'))
  return times.reduce((sum, text) => sum + Number(text.split(' ')[0]), 0)
}

function residentOf(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) / 1000
}

async function run(): Promise<readonly Figure[]> {
  const tree = new BuiltTree('sidecar')
  const lab = podLab()
  const host = lab.pods[0]!.host
  const pod = new SidecarPod(host, DNS_4, tree.command)
  try {
    await lab.startNameServer({ names: { 'www.example.com': ['198.18.0.1'] } })
    for (const { name, restartPolicy } of pod.manifest.init) {
      if (restartPolicy === undefined) await pod.run(name)
    }
    const proxy = pod.start('namegate')
    await proxy.untilOutput(/namegate serves/, 60_000)
    await host.run('dig', ['+short', '@192.0.2.54', 'www.example.com'])
    await sleep(SETTLE_MS)
    const [from, began] = [cpuOf(proxy.pid), performance.now()]
    await sleep(IDLE_MS)
    const percent = (cpuOf(proxy.pid) - from) / 1e4 / (performance.now() - began)
    const resident = residentOf(proxy.pid)
    await proxy.stop()
    return [
      { name: 'sidecar, resident', value: resident, unit: 'MB', limit: LIMIT_MB },
      { name: 'sidecar, CPU while idle', value: percent, unit: '%', limit: LIMIT_PERCENT },
    ]
  } finally {
    await lab.close()
    pod.close()
    tree.close()
  }
}

await runBench({ name: 'sidecar', about: 'the sidecar in a pod, before and between queries', run })
