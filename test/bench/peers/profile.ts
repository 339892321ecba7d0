// The cost of a query by stage without perf (perf.ts): the daemon's own CPU profile of a peak run, with self time summed by source folder and
// by function, as microseconds of the CPU time per query in the same run. Time in the kernel counts for the function that made the call. Pure
// except for reading the file.

import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { formatTable } from '../support/bench.ts'

interface ProfileNode {
  readonly id: number
  readonly callFrame: {
    readonly functionName: string
    readonly url: string
    readonly lineNumber: number
  }
}

/** The file that `node --cpu-prof` writes; times in microseconds. */
export interface CpuProfile {
  readonly startTime: number
  readonly nodes: readonly ProfileNode[]
  readonly samples: readonly number[]
  readonly timeDeltas: readonly number[]
}

export interface Share {
  readonly name: string
  /** Share of the time that was not idle. */
  readonly share: number
}

/** The counted time, in microseconds since the profile began. */
export type Window = readonly [fromUs: number, toUs: number]

export function readProfile(folder: string): CpuProfile {
  const file = readdirSync(folder).find((name) => name.endsWith('.cpuprofile'))
  if (file === undefined) throw new Error('Cannot profile: the daemon wrote no profile')
  return JSON.parse(readFileSync(join(folder, file), 'utf8')) as CpuProfile
}

/** Shares of self time in the window, largest first. `keyOf` returns the group of a node. */
export function stagesOf(
  profile: CpuProfile,
  [fromUs, toUs]: Window,
  keyOf: (node: ProfileNode) => string,
): readonly Share[] {
  const keys = new Map(profile.nodes.map((node) => [node.id, keyOf(node)]))
  const taken = new Map<string, number>()
  let at = 0
  let total = 0
  profile.samples.forEach((id, i) => {
    at += profile.timeDeltas[i] ?? 0
    const key = keys.get(id) ?? ''
    const lasts = profile.timeDeltas[i + 1] ?? 0
    if (at < fromUs || at > toUs || key === '(idle)') return
    taken.set(key, (taken.get(key) ?? 0) + lasts)
    total += lasts
  })
  return [...taken]
    .map(([name, time]) => ({ name, share: time / total }))
    .sort((a, b) => b.share - a.share)
}

/** `proxy/upstream.js`, `node:dgram`, `(garbage collector)`. */
export function fileOf({ callFrame: { url, functionName } }: ProfileNode): string {
  const inside = /dist\/src\/(.*)$/.exec(url)?.[1]
  if (inside !== undefined) return inside
  return url === '' ? functionName : url
}

export function folderOf(node: ProfileNode): string {
  const file = fileOf(node)
  return file.includes('/') && !file.startsWith('node:')
    ? file.slice(0, file.lastIndexOf('/'))
    : file
}

export function functionOf(node: ProfileNode): string {
  const { functionName, lineNumber } = node.callFrame
  return `${fileOf(node)}:${lineNumber + 1} ${functionName}`
}

export function formatShares(title: string, shares: readonly Share[], cpuUs: number): string {
  const cells = shares
    .slice(0, 30)
    .map(({ name, share }) => [
      name,
      `${(share * cpuUs).toFixed(2)}`,
      `${(share * 100).toFixed(1)}%`,
    ])
  return `${title}\n${formatTable([['', 'us/query', 'share'], ...cells])}`
}
