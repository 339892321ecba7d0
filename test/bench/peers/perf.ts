// The cost of a query by stage, from perf's samples of the running daemon (node --perf-basic-prof names the compiled functions): time in the
// kernel by system call, eBPF programs, the addons, the garbage collector, and our own code by folder. `perf script` prints a line about each
// sample and then its frames, innermost first. Parsing is pure.

import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readlinkSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Share } from './profile.ts'

export interface Frame {
  readonly symbol: string
  readonly object: string
}

/** Whether perf can sample here by its software clock. */
export function canPerf(folder: string): boolean {
  try {
    const args = ['record', '-q', '-e', 'cpu-clock', '-o', join(folder, 'probe'), 'true']
    execFileSync('perf', args, { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

/** Samples the process while the load runs. Returns the text of `perf script`. */
export async function recordPerf(
  folder: string,
  pid: number,
  load: () => Promise<void>,
): Promise<string> {
  const file = join(folder, 'perf.data')
  const args = ['record', '-q', '-g', '-e', 'cpu-clock', '-F', '1999', '-p', `${pid}`, '-o', file]
  const perf = spawn('perf', args, { stdio: 'ignore' })
  const ended = once(perf, 'close')
  const deadline = performance.now() + 10_000
  while (!isSampling(perf.pid ?? 0) && performance.now() < deadline) await sleep(20)
  await load()
  perf.kill('SIGINT')
  await ended
  return execFileSync('perf', ['script', '-i', file, '-F', 'ip,sym,dso'], {
    encoding: 'utf8',
    maxBuffer: 2 ** 30,
    stdio: ['ignore', 'pipe', 'ignore'],
  })
}

/** Whether perf has opened its events. */
function isSampling(pid: number): boolean {
  const folder = `/proc/${pid}/fd`
  try {
    return readdirSync(folder).some((fd) => readlinkSync(join(folder, fd)).includes('perf_event'))
  } catch {
    return false // it has just begun, or has closed a descriptor
  }
}

/** Removes the file of names that Node leaves. */
export function removeMap(pid: number): void {
  rmSync(join(tmpdir(), `perf-${pid}.map`), { force: true })
}

/** Frames of every sample, innermost first. */
export function parseScript(text: string): readonly (readonly Frame[])[] {
  return text
    .split(/\n\s*\n/)
    .map((sample) =>
      [...sample.matchAll(/^\s+[0-9a-f]+ (.*) \(([^()]*(?:\([^()]*\))?[^()]*)\)$/gm)].map(
        ([, symbol = '', object = '']) => ({
          symbol: symbol.replace(/\+0x[0-9a-f]+$/, ''),
          object,
        }),
      ),
    )
    .filter((frames) => frames.length > 0)
}

/** Shares of the samples, largest first. */
export function sharesOf(
  samples: readonly (readonly Frame[])[],
  keyOf: (frames: readonly Frame[]) => string,
): readonly Share[] {
  const counts = new Map<string, number>()
  for (const frames of samples) {
    const key = keyOf(frames)
    counts.set(key, (counts.get(key) ?? 0) + 1)
  }
  return [...counts]
    .map(([name, count]) => ({ name, share: count / samples.length }))
    .sort((a, b) => b.share - a.share)
}

/** The stage of a sample. */
export function stageOf(frames: readonly Frame[]): string {
  const [leaf] = frames
  if (leaf === undefined) return 'unknown'
  if (leaf.symbol.startsWith('bpf_prog_')) return 'eBPF programs'
  const call = frames
    .map(({ symbol }) => /^__(?:x64|arm64)_sys_(\w+)/.exec(symbol)?.[1])
    .find(Boolean)
  if (call !== undefined) return `kernel: ${call}`
  if (leaf.object.startsWith('[kernel')) return 'kernel: other'
  if (frames.some(({ symbol }) => /Scaveng|MarkCompact|MarkingVisitor|Sweeper/.test(symbol))) {
    return 'garbage collector'
  }
  if (leaf.object.endsWith('.node')) return `addon ${basename(leaf.object)}`
  const own = /dist\/src\/(?:(.*)\/)?[^/ ]+\.js/.exec(leaf.symbol)
  if (own !== null) return `src/${own[1] ?? ''}`
  if (leaf.symbol.startsWith('JS:')) return 'node: its JavaScript'
  return leaf.object.includes('libc') ? 'libc' : 'node: runtime'
}

/** Our functions by name and place, others by symbol. */
export function symbolOf(frames: readonly Frame[]): string {
  const [leaf] = frames
  if (leaf === undefined) return 'unknown'
  const own = /^JS:.?(\S*) .*dist\/src\/(.*?):\d+$/.exec(leaf.symbol)
  return own === null ? leaf.symbol : `src/${own[2] ?? ''} ${own[1] ?? ''}`
}
