// The state that outlives the process, with a million entries: an image written in slices, records in a journal, a number written before its
// use, and everything read back, on the file system of the temporary folder.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { PairRecord } from '../../src/restore/state-port.ts'
import { systemBootClock, systemClock } from '../../src/core/clock.ts'
import { openState, type OpenedState } from '../../src/state/state-store.ts'
import { hashedName } from '../support/hashed-name.ts'
import { runBench, type Figure } from './support/bench.ts'
import { quantile } from './support/measure.ts'
import { PAIRS, setAddress } from './support/world.ts'

const SLICE = 1000
const NUMBERS = 2000

const folder = mkdtempSync(join(tmpdir(), 'namegate-bench-state-'))

function open(): OpenedState {
  return openState({
    folder,
    clock: systemClock,
    boot: systemBootClock,
    pairsMax: PAIRS,
    onFault: ({ message }) => {
      throw new Error(message)
    },
  })
}

function* pairs(): Iterable<PairRecord> {
  const octets = new Uint8Array(16)
  for (let row = 1; row <= PAIRS; row++) {
    const { wire, length } = hashedName(`host-${row}.apps.bench.test`)
    setAddress(octets, row)
    const at = { octets, addressAt: 0, wire, nameAt: 0, nameLength: length }
    yield { ...at, row, endpoint: row % 100, until: 86_400, grace: 60, family: 4 }
  }
}

/** Milliseconds of each slice of an image, and of its end until it counts. */
async function writeImage({ store }: OpenedState): Promise<{ slices: number[]; rest: number }> {
  const image = store.beginImage()
  if (image === undefined) throw new Error('no image')
  const slices: number[] = []
  let slice: PairRecord[] = []
  for (const pair of pairs()) {
    slice.push({ ...pair, octets: pair.octets.slice() })
    if (slice.length < SLICE) continue
    const began = performance.now()
    for (const each of slice) image.pair(each)
    slices.push(performance.now() - began)
    slice = []
    while (image.isFull) await nextTurn()
  }
  const began = performance.now()
  image.end()
  while (store.use.imageOctets === 0) await nextTurn()
  return { slices, rest: performance.now() - began }
}

function writeNumbers({ store }: OpenedState): readonly number[] {
  const times: number[] = []
  for (let i = 0; i < NUMBERS; i++) {
    const began = performance.now()
    store.numbers([{ id: 2 ** 24 + i, labels: [`fqdn:n${i}.bench.test`, 'reserved:world'] }])
    times.push(performance.now() - began)
  }
  return times
}

async function run(): Promise<readonly Figure[]> {
  const opened = open()
  const { slices, rest } = await writeImage(opened)
  const numbers = writeNumbers(opened)
  const { imageOctets } = opened.store.use
  await opened.store.close()
  const [began, cpu] = [performance.now(), process.cpuUsage()]
  const { read } = open()
  const took = performance.now() - began
  const { user, system } = process.cpuUsage(cpu)
  const count = read.state?.pairs.count ?? 0
  rmSync(folder, { recursive: true })
  const perPair = slices.reduce((sum, each) => sum + each, 0) / PAIRS
  return [
    { name: 'image of 1,000,000 pairs', value: imageOctets / 1e6, unit: 'MB' },
    { name: 'time to write a pair', value: perPair * 1000, unit: 'us', limit: 1 },
    { name: `slice of ${SLICE} pairs, p99`, value: quantile(slices, 0.99), unit: 'ms', limit: 2 },
    { name: 'end of the image until it counts', value: rest, unit: 'ms' },
    { name: 'new number on its way, p50', value: quantile(numbers, 0.5) * 1000, unit: 'us' },
    {
      name: 'new number on its way, p99',
      value: quantile(numbers, 0.99) * 1000,
      unit: 'us',
      limit: 500,
    },
    { name: 'pairs read back', value: count, unit: '' },
    { name: 'time to read everything', value: took, unit: 'ms', limit: 400 },
    { name: 'CPU time of that, other threads included', value: (user + system) / 1000, unit: 'ms' },
  ]
}

await runBench({ name: 'state', about: 'a million pairs on disk and back', run })
