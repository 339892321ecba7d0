// Reads one file of the state in two passes: `scanFile` looks at header and checksums and says how far it is good, then
// `readRecords` gives its records. An image is good as a whole or not at all; of a journal counts what stands before
// the first fault.

import { decodeHeader, HEADER_OCTETS, type FileHeader } from './file-header.ts'
import { checkFrame, frameAt } from './frames.ts'
import { newestOf, type Readers } from './readers.ts'
import type { RecordFault, RecordReader, RecordVisitor } from './record-visitor.ts'
import type { Stamp } from '../stamp.ts'

export interface FileFault {
  readonly offset: number
  readonly reason: string
  /** `cut`: it ends in the middle of a frame, as after the end of the process that wrote it. `newer`: by a later version. */
  readonly kind: 'damaged' | 'cut' | 'newer'
}

export interface ScannedFile {
  readonly octets: Uint8Array
  readonly header: FileHeader
  readonly reader: RecordReader
  /** Octets from the start that are good. */
  readonly goodOctets: number
  readonly frames: number
  /** When the last frame was written, else the file. */
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

/** Gives the records of all good frames to the first fault in one of them. */
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
