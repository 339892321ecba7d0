// The sidecar of deploy/kubernetes/sidecar.yaml as `npm run build` makes it, with its capabilities, in a pod's network
// namespace, fencing it with nftables: resident memory, and CPU while nothing is asked.

import { spawnSync } from 'node:child_process'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
} from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { DNS_4, podLab } from '../support/lab-pod.ts'
import { SidecarPod } from '../support/sidecar.ts'
import { runBench, type Figure } from './support/bench.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const LIMIT_MB = 90
const LIMIT_PERCENT = 0.2
/** Until the compiler has done its work, and policy files count as untouched. */
const SETTLE_MS = 15_000
const IDLE_MS = 40_000

/** A tree with bin/namegate and dist/ as of now, so that nothing runs from sources; its program. */
function buildTree(top: string): string {
  mkdirSync(join(top, 'bin'), { recursive: true })
  copyFileSync(join(ROOT, 'bin/namegate'), join(top, 'bin/namegate'))
  copyFileSync(join(ROOT, 'package.json'), join(top, 'package.json'))
  symlinkSync(join(ROOT, 'node_modules'), join(top, 'node_modules'))
  mkdirSync(join(top, 'build'))
  symlinkSync(join(ROOT, 'build', 'Release'), join(top, 'build', 'Release'))
  const typescript = join(ROOT, 'node_modules', '.bin', 'tsc')
  const args = ['-p', 'tsconfig.build.json', '--noEmitOnError', 'false']
  // Faults of types are the compiler's business, not this one's.
  const { stdout } = spawnSync(typescript, [...args, '--outDir', join(top, 'dist')], { cwd: ROOT })
  if (!existsSync(join(top, 'dist/src/main.js'))) throw new Error(String(stdout))
  return join(top, 'bin/namegate')
}

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
  const top = join(ROOT, 'build', 'bench-sidecar')
  rmSync(top, { recursive: true, force: true })
  const lab = podLab()
  const host = lab.pods[0]!.host
  const pod = new SidecarPod(host, DNS_4, buildTree(top))
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
    rmSync(top, { recursive: true, force: true })
  }
}

await runBench({ name: 'sidecar', about: 'the sidecar in a pod, before and between queries', run })
