// The two runs beside the table: a soak that watches resident memory, and a profile.

import { execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { formatStages, fileOf, folderOf, functionOf, readProfile, stagesOf } from './profile.ts'
import type { Subject } from './proxy.ts'
import { usageOf, type Measured, type Stage } from './stage.ts'
import type { LoadName } from './subjects.ts'
import { requestOf, warmUp } from './turn.ts'

export interface Soak {
  readonly load: LoadName
  readonly rate: number
  /** Once a second, octets. */
  readonly resident: readonly number[]
  readonly measured: Measured
}

/** Runs the load at a fixed rate and looks at the proxy's memory every second. */
export async function runSoak(
  stage: Stage,
  subject: Subject,
  load: LoadName,
  rate: number,
  seconds: number,
): Promise<Soak> {
  const running = await subject.start(load)
  const resident: number[] = []
  try {
    const request = requestOf(load, running.server)
    await warmUp(stage, request, running.pid, 2)
    const timer = setInterval(() => {
      const usage = usageOf(running.pid)
      if (usage !== undefined) resident.push(usage.residentBytes)
    }, 1000)
    const measured = await stage.load({ ...request, rate, seconds }, running.pid)
    clearInterval(timer)
    return { load, rate, resident, measured }
  } finally {
    await running.stop()
  }
}

/** Stages of a peak run as text; `make` gives namegate with the profile's folder set. */
export async function runProfile(
  stage: Stage,
  make: (folder: string) => Promise<Subject>,
  load: LoadName,
  seconds: number,
): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'namegate-profile-'))
  try {
    const subject = await make(folder)
    const began = performance.now()
    const running = await subject.start(load)
    let measured: Measured
    let window: readonly [number, number]
    let kernel = ''
    try {
      const request = requestOf(load, running.server)
      await warmUp(stage, request, running.pid, 3)
      const from = (performance.now() - began) * 1000
      measured = await stage.load({ ...request, seconds }, running.pid)
      window = [from, (performance.now() - began) * 1000]
      kernel = await recordObjects(running.pid, async () => {
        await stage.load({ ...request, seconds: 3 }, running.pid)
      })
    } finally {
      await running.stop()
    }
    const cpu = (measured.proxy?.cpuUs ?? NaN) / measured.load.answered
    const profile = readProfile(folder)
    return [
      `Stages of namegate, ${load}, ${cpu.toFixed(1)} us CPU per query with the profiler on`,
      formatStages('by folder', stagesOf(profile, window, folderOf), cpu),
      formatStages('by file', stagesOf(profile, window, fileOf), cpu),
      formatStages('by function', stagesOf(profile, window, functionOf), cpu),
      kernel,
    ].join('\n')
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** perf's view of the same: time by object (kernel, node, addons) and the kernel's functions, where perf works. */
async function recordObjects(pid: number, load: () => Promise<void>): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'namegate-perf-'))
  const file = join(folder, 'data')
  try {
    const args = ['record', '-q', '-e', 'cpu-clock', '-F', '997', '-p', `${pid}`, '-o', file]
    const perf = spawn('perf', args, { stdio: 'ignore' })
    const ended = once(perf, 'close').catch(() => [])
    await load()
    perf.kill('SIGINT')
    await ended
    const report = (sort: string): string =>
      execFileSync(
        'perf',
        ['report', '-q', '--stdio', '-i', file, '--sort', sort, '--percent-limit', '1'],
        {
          encoding: 'utf8',
          stdio: ['ignore', 'pipe', 'ignore'],
        },
      ).trimEnd()
    return `perf, by object\n${report('dso')}\nperf, by symbol\n${report('dso,symbol')}\n`
  } catch (error) {
    return `perf: left out: ${error instanceof Error ? (error.message.split('\n')[0] ?? '') : 'unknown'}\n`
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
