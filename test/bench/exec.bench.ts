// The time from the start of `namegate exec` to the start of its command, with the built program: as root by veth, and as an ordinary user
// by pasta if that is installed. Starts alternate with starts of bare Node.js, so that their ratio is valid on a busy machine. The first
// runs fill the caches of the disk and do not count. NODE_EXTRA_CA_CERTS is not set, because it triples the time of bare Node.js.

import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { canUseExecLab, ExecLab, type Who } from '../support/labs/exec-lab.ts'
import { runBench, type Figure } from './support/bench.ts'
import { BuiltTree } from './support/built-tree.ts'

const LIMIT_MS = 300
/** As a multiple of the time of bare Node.js. */
const LIMIT_RATIO = 3
const WARM_UP = 2
const RUNS = 20
const ENV = { ...process.env, NODE_EXTRA_CA_CERTS: undefined }

/** Milliseconds. The command itself is the clock. */
function startOnce(lab: ExecLab, who: Who): number {
  const { command, rest } = lab.commandOf(who, ['--quiet', '--', 'date', '+%s%N'], 'date +%s%N >&2')
  const inside = [`--net=/run/netns/${lab.caller.namespace}`, command, ...rest]
  const before = BigInt(Date.now()) * 1_000_000n
  const { stdout, stderr, status, signal } = spawnSync('nsenter', inside, {
    encoding: 'utf8',
    env: ENV,
  })
  if (status !== 0) throw new Error(`ended with ${status ?? signal}: ${stdout}${stderr}`)
  // For a user, the preparation of the mounts does not count.
  const begun = /^\d+$/m.exec(stderr)?.[0]
  return Number(BigInt(stdout.trim()) - (begun === undefined ? before : BigInt(begun))) / 1e6
}

/** Milliseconds from the start to the end of `node -e 0`. */
function bareOnce(): number {
  const before = performance.now()
  spawnSync(process.execPath, ['-e', '0'], { env: ENV })
  return performance.now() - before
}

function figuresOf(lab: ExecLab, who: Who): readonly Figure[] {
  const times: number[] = []
  const ratios: number[] = []
  for (let i = 0; i < WARM_UP + RUNS; i++) {
    const bare = bareOnce()
    const time = startOnce(lab, who)
    if (i < WARM_UP) continue
    times.push(time)
    ratios.push(time / bare)
  }
  return [
    { name: `start to command, as ${who}`, unit: 'ms', limit: LIMIT_MS, ...medianOf(times) },
    {
      name: 'the same in multiples of bare Node.js',
      unit: 'x',
      limit: LIMIT_RATIO,
      ...medianOf(ratios),
    },
  ]
}

function medianOf(values: number[]): Pick<Figure, 'value' | 'spread'> {
  values.sort((a, b) => a - b)
  return { value: values[RUNS >> 1] ?? NaN, spread: [values[0] ?? NaN, values.at(-1) ?? NaN] }
}

async function run(): Promise<readonly Figure[]> {
  const reason = canUseExecLab()
  if (reason !== undefined) throw new Error(reason)
  const tree = new BuiltTree('exec')
  const lab = ExecLab.bare(tree.folder)
  try {
    const user = existsSync('/usr/bin/pasta') ? figuresOf(lab, 'user') : []
    return [...figuresOf(lab, 'root'), ...user]
  } finally {
    await lab.close()
    tree.close()
  }
}

await runBench({ name: 'exec', about: 'from namegate exec to its command, median of 20 runs', run })
