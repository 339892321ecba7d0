// The command line of `npm run bench:peers`.

import { parseArgs } from 'node:util'
import { SUBJECTS, type SubjectName } from './subjects.ts'

export interface Options {
  /** One round of short runs, to see that everything works. Its figures mean nothing. */
  readonly quick: boolean
  /** If empty: all. The direct row always runs, because latencies are relative to it. */
  readonly only: readonly SubjectName[]
  readonly json: boolean
  readonly profile: boolean
  /** Ten minutes each in place of one. */
  readonly soak: boolean
  /** Exit code 1 if a figure is over its limit. */
  readonly strict: boolean
  readonly rounds: number
  /** Runs before all other processes on the machine, which hardly run meanwhile. */
  readonly priority: boolean
}

export const USAGE = `npm run bench:peers -- [--quick] [--only NAME]... [--rounds N] [--soak] [--profile] [--strict] [--priority] [-o json]
names: ${SUBJECTS.join(', ')}`

/** The options, or the fault in the arguments. */
export function parseOptions(args: readonly string[]): Options | string {
  let parsed
  try {
    parsed = parseArgs({
      args: [...args],
      options: {
        quick: { type: 'boolean', default: false },
        only: { type: 'string', multiple: true, default: [] },
        rounds: { type: 'string' },
        soak: { type: 'boolean', default: false },
        profile: { type: 'boolean', default: false },
        strict: { type: 'boolean', default: false },
        priority: { type: 'boolean', default: false },
        output: { type: 'string', short: 'o' },
      },
    })
  } catch (error) {
    return `${error instanceof Error ? error.message : String(error)}\n${USAGE}`
  }
  const { quick, only, rounds, soak, profile, strict, priority, output } = parsed.values
  const names = only.flatMap((text) => SUBJECTS.filter((name) => name === text))
  if (names.length !== only.length) return `unknown name in --only ${only.join(' ')}\n${USAGE}`
  if (output !== undefined && output !== 'json') return `unknown output ${output}\n${USAGE}`
  const count = Number(rounds ?? (quick ? 1 : 3))
  if (!Number.isInteger(count) || count < 1) return `--rounds wants a number from 1\n${USAGE}`
  return {
    quick,
    only: names,
    json: output === 'json',
    profile,
    soak,
    strict,
    priority,
    rounds: count,
  }
}
