// An imaginary format that differs from version 1 only in the layout of pairs. It proves that a version with a new reader reads the files
// of the version before, and that the version before ignores the new files.

import {
  decodeHeader,
  encodeHeader,
  FRAME_HEAD_OCTETS,
  frameAt,
  HEADER_OCTETS,
  sealFrame,
} from '../../../src/state/files/file-format.ts'
import {
  READERS,
  type Readers,
  readRecordsV1,
  type RecordReader,
} from '../../../src/state/files/record-reader.ts'

/** In version 2, grace is written before until. */
const readRecordsV2: RecordReader = (octets, start, end, visitor) =>
  readRecordsV1(octets, start, end, {
    pair: (pair) => visitor.pair({ ...pair, until: pair.grace, grace: pair.until }),
    until: (row, until) => visitor.until(row, until),
    gone: (row) => visitor.gone(row),
    number: (id, labels) => visitor.number(id, labels),
    document: (document) => visitor.document(document),
    imageEnd: (journalOctets) => visitor.imageEnd(journalOctets),
  })

/** The readers of the next version. */
export const NEXT_READERS: Readers = { ...READERS, 2: readRecordsV2 }

/** Converts a file of version 1 to version 2. */
export function toVersion2(file: Uint8Array): Uint8Array {
  const octets = Uint8Array.from(file)
  const decoded = decodeHeader(octets)
  if (decoded.kind === 'bad') throw new Error(decoded.reason)
  const header = encodeHeader({ ...decoded.header, version: 2 })
  octets.set(header)
  const seed = new DataView(header.buffer).getUint32(HEADER_OCTETS - 4, true)
  const view = new DataView(octets.buffer)
  for (let at = HEADER_OCTETS; at < octets.length;) {
    const { stamp, start, end } = frameAt(octets, at)
    readRecordsV1(octets, start, end, {
      pair: ({ addressAt, until, grace }) => {
        view.setInt32(addressAt - 8, grace, true)
        view.setUint32(addressAt - 4, until, true)
      },
      until: () => undefined,
      gone: () => undefined,
      number: () => undefined,
      document: () => undefined,
      imageEnd: () => undefined,
    })
    sealFrame(octets.subarray(start - FRAME_HEAD_OCTETS, end), stamp, seed)
    at = end
  }
  return octets
}
