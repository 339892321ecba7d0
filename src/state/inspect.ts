// inspectFile reads one file of the state: its kind, how many octets are good, and its content. A journal alone has only changes. If the
// whole record of a pair is in an earlier file, a change of the pair is counted in `strays` and not shown.

import type { SavedState } from '../restore/state-port.ts'
import { readFile } from './files/disk.ts'
import type { FileHeader } from './files/file-format.ts'
import { scanFile, type FileFault } from './files/file-reader.ts'
import { FILE_OCTETS_MAX } from './files/generations.ts'
import { READERS, type Readers, ROW_MAX } from './files/record-reader.ts'
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
      /** The first fault. With the kind `cut`, the file ends inside a frame, as after a kill of its process. Undefined: all is good. */
      readonly fault: FileFault | undefined
      readonly state: SavedState
      readonly records: StateBuilder['counts']
      /** How many changes are about pairs without a whole record in the file. */
      readonly strays: number
    }

/** Inspects the file at a path. Throws if the file cannot be read. */
export function inspectFile(path: string, readers: Readers = READERS): Inspection {
  const scanned = scanFile(readFile(path, FILE_OCTETS_MAX), readers)
  if (scanned.kind === 'bad') return { kind: 'unreadable', fault: scanned.fault }
  const { file } = scanned
  // With equal boot ids in header and `now`, times are not translated.
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

/** Returns the wall clock, in milliseconds, of a time in the file. */
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
