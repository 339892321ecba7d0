// Runs benchmarks one after the other, each as a process:
//
//   node --expose-gc --import tsx test/bench/main.ts [--strict] [-o json] [NAME-PART…]
//
// A benchmark is a file test/bench/NAME.bench.ts (see support/bench.ts). To add one, add a file. Exit code: 0, also if a figure is over its
// limit, unless --strict; 1 if a benchmark failed; 2 for wrong usage.

import { spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** The young generation is the daemon's (bin/namegate, support/bench.ts). */
const NODE_FLAGS = ['--expose-gc', '--max-semi-space-size=16']
const TIME_LIMIT_MS = 10 * 60_000

interface Options {
  readonly strict: boolean
  readonly json: boolean
  readonly parts: readonly string[]
}

function parseArgs(args: readonly string[]): Options | string {
  const parts: string[] = []
  let [strict, json] = [false, false]
  for (let i = 0; i < args.length; i++) {
    const arg = args[i] ?? ''
    if (arg === '--strict') strict = true
    else if (arg === '-o' && args[i + 1] === 'json') json = i++ >= 0
    else if (arg.startsWith('-'))
      return `unknown option ${arg}: expected --strict, -o json or parts of names`
    else parts.push(arg)
  }
  return { strict, json, parts }
}

/** Files of the benchmarks whose name contains one of the parts. Without parts: all. */
function choose(parts: readonly string[]): readonly string[] {
  const folder = fileURLToPath(new URL('.', import.meta.url))
  return readdirSync(folder)
    .filter((file) => file.endsWith('.bench.ts'))
    .filter((file) => parts.length === 0 || parts.some((part) => file.includes(part)))
    .sort()
    .map((file) => folder + file)
}

/** Runs one benchmark. Prints its table at once, or returns its JSON. */
function runFile(
  file: string,
  { strict, json }: Options,
): { readonly ok: boolean; readonly report: string } {
  const flags = [...(strict ? ['--strict'] : []), ...(json ? ['-o', 'json'] : [])]
  const args = [...NODE_FLAGS, '--import', 'tsx', file, ...flags]
  const stdio = ['ignore', json ? 'pipe' : 'inherit', 'inherit'] as const
  const child = spawnSync(process.execPath, args, {
    stdio: [...stdio],
    encoding: 'utf8',
    timeout: TIME_LIMIT_MS,
  })
  const ended = child.signal === null ? `exit code ${child.status}` : `signal ${child.signal}`
  if (child.status !== 0) process.stderr.write(`Benchmark ended with ${ended}: ${file}\n`)
  return { ok: child.status === 0, report: child.stdout ?? '' }
}

function main(args: readonly string[]): number {
  const options = parseArgs(args)
  if (typeof options === 'string') {
    process.stderr.write(`${options}\n`)
    return 2
  }
  const files = choose(options.parts)
  if (files.length === 0) {
    process.stderr.write(`Cannot run: no benchmark has ${options.parts.join(' or ')} in its name\n`)
    return 2
  }
  const results = files.map((file) => runFile(file, options))
  if (options.json) {
    const reports = results.map(({ report }) => report.trim()).filter((report) => report !== '')
    process.stdout.write(`[${reports.join(',\n')}]\n`)
  }
  return results.every(({ ok }) => ok) ? 0 : 1
}

process.exitCode = main(process.argv.slice(2))
