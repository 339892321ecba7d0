// This file reads one file of the state in two passes. `scanFile` checks the header and the checksums, and returns how many octets are
// good. `readRecords` visits the records. An image is used as a whole or not at all. A journal is used up to its first fault.

import { checkFrame, decodeHeader, type FileHeader, frameAt, HEADER_OCTETS } from './file-format.ts'
import {
  newestOf,
  type Readers,
  type RecordFault,
  type RecordReader,
  type RecordVisitor,
} from './record-reader.ts'
import type { Stamp } from '../stamp.ts'

export interface FileFault {
  readonly offset: number
  readonly reason: string
  /** `cut`: the file ends inside a frame, as after a kill of its process. `newer`: no reader knows the file's format version. */
  readonly kind: 'damaged' | 'cut' | 'newer'
}

export interface ScannedFile {
  readonly octets: Uint8Array
  readonly header: FileHeader
  readonly reader: RecordReader
  /** How many octets from the beginning of the file are good. */
  readonly goodOctets: number
  /** How many frames are good. */
  readonly frames: number
  /** The time of the last good frame, or of the header if there is none. */
  readonly last: Stamp
  readonly fault: FileFault | undefined
}

export type ScanResult =
  | { readonly kind: 'ok'; readonly file: ScannedFile }
  | { readonly kind: 'bad'; readonly fault: FileFault; readonly header: FileHeader | undefined }

export function scanFile(octets: Uint8Array, readers: Readers): ScanResult {
  const decoded = decodeHeader(octets)
  if (decoded.kind === 'bad') {
    const kind = octets.length < HEADER_OCTETS ? 'cut' : 'damaged'
    return { kind: 'bad', fault: { offset: 0, reason: decoded.reason, kind }, header: undefined }
  }
  const { header, seed } = decoded
  const reader = readers[header.version]
  if (reader === undefined) {
    return { kind: 'bad', fault: faultOfVersion(header.version, readers), header }
  }
  let [at, frames, last] = [HEADER_OCTETS, 0, header.begun]
  for (;;) {
    const frame = checkFrame(octets, at, seed)
    if (frame.kind !== 'ok') {
      const { kind } = frame
      const fault: FileFault | undefined =
        kind === 'end'
          ? undefined
          : { offset: at, reason: frame.reason, kind: kind === 'cut' ? 'cut' : 'damaged' }
      return { kind: 'ok', file: { octets, header, reader, goodOctets: at, frames, last, fault } }
    }
    at = frame.end
    frames++
    last = frame.stamp
  }
}

/** Visits the records of all good frames. Stops at the first fault in a record, and returns it. */
export function readRecords(
  file: ScannedFile,
  visitor: RecordVisitor,
  beginFrame: (stamp: Stamp) => void,
): RecordFault | undefined {
  let at = HEADER_OCTETS
  while (at < file.goodOctets) {
    const { stamp, start, end } = frameAt(file.octets, at)
    beginFrame(stamp)
    const fault = file.reader(file.octets, start, end, visitor)
    if (fault !== undefined) return fault
    at = end
  }
  return undefined
}

function faultOfVersion(version: number, readers: Readers): FileFault {
  const newest = newestOf(readers)
  const reason =
    version > newest
      ? `written by a newer version of namegate: format ${version}, this one reads up to ${newest}`
      : `found format ${version}, which this version no longer reads`
  return { offset: 8, reason, kind: 'newer' }
}
