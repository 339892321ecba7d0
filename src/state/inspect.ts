// One file of the state by itself, for people: what it is, how far it is good, and what it holds. A journal alone tells
// only what changed: records about pairs whose whole record stands in an earlier file are counted, nothing more.

import type { SavedState } from '../restore/state-port.ts'
import { readFile } from './files/disk.ts'
import type { FileHeader } from './files/file-header.ts'
import { scanFile, type FileFault } from './files/file-reader.ts'
import { FILE_OCTETS_MAX } from './files/generations.ts'
import { READERS, type Readers } from './files/readers.ts'
import { ROW_MAX } from './files/records-v1.ts'
import { StateBuilder } from './state-builder.ts'
import type { Stamp } from './stamp.ts'

export type Inspection =
  | { readonly kind: 'unreadable'; readonly fault: FileFault }
  | {
      readonly kind: 'read'
      readonly header: FileHeader
      readonly octets: number
      readonly goodOctets: number
      readonly frames: number
      readonly lastWrite: Stamp
      /** `cut` is how a journal ends whose process did not. */
      readonly fault: FileFault | undefined
      readonly state: SavedState
      readonly records: StateBuilder['counts']
      /** Records about pairs that are not in the file. */
      readonly strays: number
    }

/** Throws when the file can't be read at all. */
export function inspectFile(path: string, readers: Readers = READERS): Inspection {
  const scanned = scanFile(readFile(path, FILE_OCTETS_MAX), readers)
  if (scanned.kind === 'bad') return { kind: 'unreadable', fault: scanned.fault }
  const { file } = scanned
  // As if read in the boot that wrote it, so that times stay as they are written.
  const bootId = new Uint8Array(16).fill(1)
  const now = { ...file.last, bootId }
  const builder = new StateBuilder({ pairsMax: ROW_MAX, now })
  const inside = builder.add({ ...file, header: { ...file.header, bootId } }, true)
  const found = inside && { offset: inside.at, reason: inside.reason, kind: 'damaged' as const }
  return {
    kind: 'read',
    header: file.header,
    octets: file.octets.length,
    goodOctets: file.goodOctets,
    frames: file.frames,
    lastWrite: file.last,
    fault: found ?? file.fault ?? missingEnd(file.header, file.goodOctets, builder),
    state: builder.finish(),
    records: builder.counts,
    strays: builder.strays,
  }
}

/** Wall-clock milliseconds of a time in the file. */
export function wallOf(seconds: number, { begun }: FileHeader): number {
  return begun.wallMs + (seconds - begun.bootSeconds) * 1000
}

function missingEnd(
  { kind }: FileHeader,
  offset: number,
  { imageNeeds }: StateBuilder,
): FileFault | undefined {
  if (kind === 'journal' || imageNeeds !== undefined) return undefined
  return { offset, reason: 'expected the end of the image', kind: 'damaged' }
}
