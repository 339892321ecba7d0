// Sends 1,000,000 mutated packets through the whole daemon, in and out, over real sockets. The daemon must not crash. Every query must get
// the one answer that docs/spec/semantics 4 says. The node must learn exactly what the oracle says.
//
//   npm run fuzz [-- packets --count N --seed S --only CASE]
//
// Exit code: 0; 1 on any difference, with the seed, the case and its packets, or if too few packets were accepted; 2 for wrong usage.

import { parseArgs } from 'node:util'
import { run, type RunResult } from './support/run.ts'
import type { Tally } from './support/tally.ts'

const COUNT = 1_000_000
const SEED = 20_260_914

function wholeNumber(text: string | undefined, fallback: number): number {
  const value = text === undefined ? fallback : Number(text)
  if (!Number.isSafeInteger(value) || value < 0) throw new Error(`${text} is no whole number`)
  return value
}

function readArgs(args: readonly string[]): { count: number; seed: number; only?: number } {
  const text = { type: 'string' } as const
  const options = { count: text, seed: text, only: text }
  const { values } = parseArgs({ args: [...args], options, allowPositionals: true })
  const count = wholeNumber(values.count, COUNT)
  const seed = wholeNumber(values.seed, SEED)
  const only = values.only
  return only === undefined ? { count, seed } : { count, seed, only: wholeNumber(only, 0) }
}

function onProgress(tally: Tally): void {
  process.stderr.write(`${tally.total} packets\n`)
}

function report({ tally, faults, seconds, memory }: RunResult, seed: number, alone: boolean): void {
  const shortfalls = alone ? [] : tally.shortfalls
  const rate = Math.round(tally.total / seconds)
  console.log(tally.report().join('\n'))
  console.log(`${seconds.toFixed(0)} s, ${rate} mutated packets a second, seed ${seed}`)
  console.log(`resident memory: ${memory[0]} MiB after a tenth, ${memory[1]} MiB at the end`)
  for (const fault of faults) console.log(`DIFFERENCE (seed ${seed}): ${fault}`)
  for (const shortfall of shortfalls) console.log(`TOO FEW: ${shortfall}`)
  if (faults.length + shortfalls.length > 0) process.exitCode = 1
  else console.log('no crash, no difference')
}

async function main(args: readonly string[]): Promise<void> {
  let options
  try {
    options = readArgs(args)
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
    process.exitCode = 2
    return
  }
  report(await run({ ...options, onProgress }), options.seed, options.only !== undefined)
}

await main(process.argv.slice(2))
