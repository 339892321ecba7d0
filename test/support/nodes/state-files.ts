// Records and state folders for tests: written and read values as plain values that can be compared.

import assert from 'node:assert/strict'
import type { ImageSink, PairRecord, RecordSink } from '../../../src/restore/state-port.ts'
import { formatAddress, type Family } from '../../../src/core/ip.ts'
import { formatName, parseName } from '../../../src/core/name.ts'
import { readState, type PassedOver, type ReadState } from '../../../src/state/read-state.ts'
import type { Readers } from '../../../src/state/files/record-reader.ts'
import { StateStore } from '../../../src/state/state-store.ts'
import type { StateFault } from '../../../src/state/faults.ts'
import { MemoryDisk } from '../models/memory-disk.ts'
import { FakeClock } from '../fake-clock.ts'

export const BOOT_A = new Uint8Array(16).fill(1)
export const BOOT_B = new Uint8Array(16).fill(2)
export const PAIRS_MAX = 1000

/** A pair whose name, address and endpoint come from a number, so that it differs from all others. */
export function mkPair(row: number, serial: number, until = 500): PairRecord {
  const family: Family = serial % 3 === 0 ? 6 : 4
  const octets = new Uint8Array(20)
  octets.set([10, (serial >> 16) & 255, (serial >> 8) & 255, serial & 255], 4)
  const name = parseName(`n${serial}.${'x'.repeat(serial % 40)}y.test`)
  if (name.kind === 'bad') throw new Error(name.reason)
  return {
    row,
    endpoint: 1 + (serial % 5),
    until,
    grace: serial % 100,
    family,
    octets,
    addressAt: 4,
    wire: Uint8Array.from([0, ...name.name]),
    nameAt: 1,
    nameLength: name.name.length,
  }
}

/** `endpoint name address grace`: everything except the time. */
export function textOfPair(pair: PairRecord): string {
  const address = formatAddress(pair.family, pair.octets, pair.addressAt)
  return `${pair.endpoint} ${formatName(pair.wire, pair.nameAt)} ${address} ${pair.grace}`
}

/** The pairs that were read, with `until`. A pair of two runs appears more than once. */
export function pairsOf({ state }: ReadState): [text: string, until: number][] {
  const rows: [string, number][] = []
  const pairs = state?.pairs
  for (let row = 0; row < (pairs?.count ?? 0); row++) {
    if (pairs === undefined) break
    const octets = pairs.octets(row)
    const [addressAt, nameAt] = [pairs.addressAt(row), pairs.nameAt(row)]
    const address = formatAddress(pairs.family(row), octets, addressAt)
    const name = formatName(octets, nameAt)
    if (octets[nameAt + pairs.nameLength(row) - 1] !== 0) throw new Error('name of another length')
    rows.push([`${pairs.endpoint(row)} ${name} ${address} ${pairs.grace(row)}`, pairs.until(row)])
  }
  return rows
}

/** A machine: its clocks, and the state folder of its processes, one after the other. */
export class StateNode {
  readonly clock = new FakeClock(100_000)
  bootId = BOOT_A
  /** The sum of the changes of the wall clock. */
  wallShift = 0
  /** Subtracted from the time since boot by a reboot. */
  bootedAt = 0
  readonly faults: StateFault[] = []

  readonly boot = { seconds: () => this.clock.now() / 1000 - this.bootedAt }

  read(disk: MemoryDisk, readers?: Readers, pairsMax = PAIRS_MAX): ReadState {
    const bootSeconds = Math.floor(this.boot.seconds())
    const now = { bootSeconds, wallMs: this.clock.wall() + this.wallShift, bootId: this.bootId }
    return readState({ disk, pairsMax, now, ...(readers === undefined ? {} : { readers }) })
  }

  store(disk: MemoryDisk, read = this.read(disk)): StateStore {
    const { clock } = this
    const shifted = {
      now: () => clock.now(),
      wall: () => clock.wall() + this.wallShift,
      after: (ms: number, run: () => void) => clock.after(ms, run),
      every: (ms: number, run: () => void) => clock.every(ms, run),
      soon: (run: () => void) => clock.soon(run),
    }
    const { boot, bootId } = this
    const onFault = (fault: StateFault): void => void this.faults.push(fault)
    return new StateStore({ disk, clock: shifted, boot, bootId, read, onFault })
  }

  reboot(): void {
    this.bootedAt = this.clock.now() / 1000
    this.bootId = BOOT_B
  }
}

/** One item of `pairsOf`, by its number. */
export function rowOf(serial: number, until = 500): [text: string, until: number] {
  return [textOfPair(mkPair(serial, serial)), until]
}

/** Two generations: image 1 has pair 1, journal 1 has pair 2, image 2 has both, journal 2 has pair 3. */
export async function twoGenerations(node: StateNode): Promise<MemoryDisk> {
  const disk = new MemoryDisk()
  const store = node.store(disk)
  for (const generation of [1, 2]) {
    const image = store.beginImage()
    for (let row = 1; row <= generation; row++) image?.pair(mkPair(row, row))
    image?.end()
    await disk.settle()
    store.pair(mkPair(generation + 1, generation + 1))
    store.flush()
    await disk.settle()
  }
  return disk
}

/** `file:offset: reason` */
export function said(passed: PassedOver | undefined): string {
  return `${passed?.file}:${passed?.offset}: ${passed?.reason}`
}

export const NUMBER = { id: 2 ** 24 + 1, labels: ['fqdn:*.a.test', 'reserved:world'] }
export const DOCUMENT = { kind: 'source-file', key: 'p.yaml', text: 'kind: é\n' } as const
export const ENDPOINT = { kind: 'endpoint', key: 'shop-1', text: '{"id":7}' } as const

/** Writes what most tests keep: a number, a document of each kind, pairs 1 to 3. */
export function writeAll(sink: RecordSink): void {
  sink.numbers([NUMBER])
  sink.document(DOCUMENT)
  sink.document(ENDPOINT)
  for (const row of [1, 2, 3]) sink.pair(mkPair(row, row))
}

/** Writes a finished image of the same records. */
export async function writeImage(disk: MemoryDisk, image: ImageSink | undefined): Promise<void> {
  assert.ok(image !== undefined)
  writeAll(image)
  image.end()
  await disk.settle()
}

/** The pairs in it, in the form of `pairsOf`. */
export const ALL = [1, 2, 3].map((row): [string, number] => [textOfPair(mkPair(row, row)), 500])
