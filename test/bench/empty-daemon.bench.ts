// Resident memory of the built daemon, started by `bin/namegate`, with the memory datapath, one endpoint and one policy, before the first
// query.

import { spawn } from 'node:child_process'
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { runBench, type Figure } from './support/bench.ts'
import { BuiltTree } from './support/built-tree.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const ROUNDS = 3
const LIMIT_MB = 90
async function residentOf(command: string, folder: string): Promise<number> {
  const config = join(folder, 'namegate.yaml')
  const stdio = ['ignore', 'ignore', 'inherit'] as const
  const daemon = spawn(command, ['run', '--config', config], { cwd: folder, stdio: [...stdio] })
  const ended = new Promise((resolve) => daemon.once('exit', resolve))
  try {
    await sleep(4000)
    if (daemon.exitCode !== null) throw new Error('the daemon has ended')
    const status = readFileSync(`/proc/${daemon.pid}/status`, 'utf8')
    return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) / 1000
  } finally {
    daemon.kill()
    await ended
  }
}

async function run(): Promise<readonly Figure[]> {
  const tree = new BuiltTree('empty-daemon')
  const folder = mkdtempSync(join(tmpdir(), 'namegate-bench-'))
  try {
    mkdirSync(join(folder, 'policies'))
    for (const file of ['endpoints.yaml', 'policies/example.yaml']) {
      copyFileSync(join(ROOT, 'config', file), join(folder, file))
    }
    writeFileSync(
      join(folder, 'namegate.yaml'),
      'listeners: [{ address: 127.0.0.1, port: 0, mode: explicit }]\nupstreams: { servers: ["127.0.0.1:9"] }\nmetrics: { port: 0 }\n',
    )
    const values: number[] = []
    for (let i = 0; i < ROUNDS; i++) {
      values.push(await residentOf(tree.command, folder))
    }
    values.sort((a, b) => a - b)
    const [least = NaN, median = NaN, most = NaN] = values
    const spread: [number, number] = [least, most]
    return [{ name: 'empty daemon, resident', value: median, unit: 'MB', limit: LIMIT_MB, spread }]
  } finally {
    tree.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

await runBench({ name: 'empty-daemon', about: 'the built daemon before its first query', run })
