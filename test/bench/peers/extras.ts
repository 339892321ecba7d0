// The two runs beside the table: a soak that measures resident memory, and a profile.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { canPerf, parseScript, recordPerf, removeMap, sharesOf, stageOf, symbolOf } from './perf.ts'
import {
  folderOf,
  formatShares,
  functionOf,
  readProfile,
  stagesOf,
  type Window,
} from './profile.ts'
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

/** Runs the load at a fixed rate, and reads the proxy's memory every second. */
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

/** The stages of a peak run as text. `make` starts namegate with these flags of Node. */
export async function runProfile(
  stage: Stage,
  make: (flags: readonly string[]) => Promise<Subject>,
  load: LoadName,
  seconds: number,
): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'namegate-profile-'))
  try {
    const perf = canPerf(folder)
    const flags = perf ? ['--perf-basic-prof'] : ['--cpu-prof', `--cpu-prof-dir=${folder}`]
    const subject = await make(flags)
    const began = performance.now()
    const running = await subject.start(load)
    const measured: Measured[] = []
    let script = ''
    let window: Window = [0, 0]
    try {
      const request = requestOf(load, running.server)
      await warmUp(stage, request, running.pid, 3)
      const run = async () => {
        measured.push(await stage.load({ ...request, seconds }, running.pid))
      }
      const from = (performance.now() - began) * 1000
      if (perf) script = await recordPerf(folder, running.pid, run)
      else await run()
      window = [from, (performance.now() - began) * 1000]
    } finally {
      await running.stop()
      removeMap(running.pid)
    }
    const [one] = measured
    const cpu = (one?.proxy?.cpuUs ?? NaN) / (one?.load.answered ?? NaN)
    const head = `Stages of namegate, ${load}: ${cpu.toFixed(1)} us CPU per query while profiled by ${perf ? 'perf' : 'node --cpu-prof'}`
    return [head, ...(perf ? perfTables(script, cpu) : cpuProfTables(folder, window, cpu))].join(
      '\n',
    )
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function perfTables(script: string, cpu: number): readonly string[] {
  const samples = parseScript(script)
  return [
    formatShares(`by stage, ${samples.length} samples`, sharesOf(samples, stageOf), cpu),
    formatShares('by function', sharesOf(samples, symbolOf), cpu),
  ]
}

function cpuProfTables(folder: string, window: Window, cpu: number): readonly string[] {
  const profile = readProfile(folder)
  return [
    formatShares('by folder', stagesOf(profile, window, folderOf), cpu),
    formatShares('by function', stagesOf(profile, window, functionOf), cpu),
  ]
}
