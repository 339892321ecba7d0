// From the start of `namegate exec` to the start of its command, of the program as `npm run build` makes it: as root by veth,
// and as an ordinary user by pasta where that is installed. The first runs fill the caches of the disk and do not count.

import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { canUseExecLab, ExecLab, type Who } from '../support/labs/exec-lab.ts'
import { runBench, type Figure } from './support/bench.ts'
import { BuiltTree } from './support/built-tree.ts'

const LIMIT_MS = 300
const WARM_UP = 2
const RUNS = 15

/** Milliseconds; the command is the clock itself. */
function startOnce(lab: ExecLab, who: Who): number {
  const { command, rest } = lab.commandOf(who, ['--quiet', '--', 'date', '+%s%N'], 'date +%s%N >&2')
  const inside = [`--net=/run/netns/${lab.caller.namespace}`, command, ...rest]
  const before = BigInt(Date.now()) * 1_000_000n
  const { stdout, stderr, status, signal } = spawnSync('nsenter', inside, { encoding: 'utf8' })
  if (status !== 0) throw new Error(`ended with ${status ?? signal}: ${stdout}${stderr}`)
  // As a user: what prepares his mounts does not count.
  const begun = /^\d+$/m.exec(stderr)?.[0]
  return Number(BigInt(stdout.trim()) - (begun === undefined ? before : BigInt(begun))) / 1e6
}

function figureOf(lab: ExecLab, who: Who): Figure {
  const times: number[] = []
  for (let i = 0; i < WARM_UP + RUNS; i++) {
    const time = startOnce(lab, who)
    if (i >= WARM_UP) times.push(time)
  }
  times.sort((a, b) => a - b)
  const value = times[RUNS >> 1] ?? NaN
  const spread = [times[0] ?? NaN, times.at(-1) ?? NaN] as const
  return { name: `start to command, as ${who}`, value, unit: 'ms', limit: LIMIT_MS, spread }
}

async function run(): Promise<readonly Figure[]> {
  const reason = canUseExecLab()
  if (reason !== undefined) throw new Error(reason)
  const tree = new BuiltTree('exec')
  const lab = ExecLab.bare(tree.folder)
  try {
    const user = existsSync('/usr/bin/pasta') ? [figureOf(lab, 'user')] : []
    return [figureOf(lab, 'root'), ...user]
  } finally {
    await lab.close()
    tree.close()
  }
}

await runBench({ name: 'exec', about: 'from namegate exec to its command, median of 15 runs', run })
