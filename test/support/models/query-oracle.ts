// The result of a client's query by its octets alone, by a slow and literal reading of docs/spec/semantics 4's table: the second opinion
// on dns/query.ts. Names are arrays of Latin-1 labels in lower case, never dotted text.
//
// docs/spec/semantics leaves some readings open. They are decided here as in the product: of several faults the row that needs least of
// the message decides (silence, opcode, form, EDNS version, no question); options of a later EDNS version are ignored.

import { readLabels } from './oracle.ts'

export type QueryVerdict = 'silent' | 'formerr' | 'notimp' | 'badvers' | 'ok'

export interface ReadOpt {
  readonly udpSize: number
  readonly version: number
  readonly dnssecOk: boolean
}

export interface ReadQuery {
  readonly verdict: QueryVerdict
  /** Well-formed throughout. Otherwise the fields below mean nothing. */
  readonly sound: boolean
  readonly labels: readonly string[]
  readonly type: number
  readonly class: number
  /** The number of octets up to the end of the question; 12 without one. */
  readonly questionEnd: number
  readonly opt: ReadOpt | undefined
}

type Body = Omit<ReadQuery, 'verdict' | 'sound'>

const NOTHING: Body = { labels: [], type: 0, class: 0, questionEnd: 12, opt: undefined }
const OPT = 41
const COOKIE = 10

export function readQuery(message: Uint8Array): ReadQuery {
  const view = viewOf(message)
  if (message.length < 12 || view.getUint8(2) >= 128) return unsound('silent')
  if (((view.getUint8(2) >> 3) & 15) !== 0) return unsound('notimp')
  const body = dissect(message)
  if (body === undefined) return unsound('formerr')
  const later = (body.opt?.version ?? 0) > 0
  const verdict = later ? 'badvers' : view.getUint16(4) === 0 ? 'notimp' : 'ok'
  return { verdict, sound: true, ...body }
}

function unsound(verdict: QueryVerdict): ReadQuery {
  return { verdict, sound: false, ...NOTHING }
}

function viewOf(message: Uint8Array): DataView {
  return new DataView(message.buffer, message.byteOffset, message.length)
}

/** Undefined if an octet is missing, wrong or left over. */
function dissect(message: Uint8Array): Body | undefined {
  const view = viewOf(message)
  let body: Body | undefined = NOTHING
  if (view.getUint16(4) > 1) return undefined
  if (view.getUint16(4) === 1) body = readQuestion(message, view)
  let opt: ReadOpt | undefined
  let at = body?.questionEnd ?? 0
  for (let section = 1; section <= 3; section++) {
    for (let i = 0; i < view.getUint16(4 + section * 2); i++) {
      const record = body && readRecord(message, view, at)
      if (body === undefined || record === undefined) return undefined
      if (record.type === OPT) {
        const misplaced = section !== 3 || opt !== undefined || message[at] !== 0
        if (misplaced || !record.sound) return undefined
        opt = record.opt
      }
      at = record.next
    }
  }
  return body && at === message.length ? { ...body, opt } : undefined
}

function readQuestion(message: Uint8Array, view: DataView): Body | undefined {
  const name = readLabels(message, 12)
  if (name === undefined || name.next + 4 > message.length) return undefined
  const size = name.labels.reduce((sum, label) => sum + 1 + label.length, 1)
  // A name with a pointer has another size than its labels.
  if (name.next - 12 !== size) return undefined
  return {
    labels: name.labels,
    type: view.getUint16(name.next),
    class: view.getUint16(name.next + 2),
    questionEnd: name.next + 4,
    opt: undefined,
  }
}

interface ReadRecord {
  readonly type: number
  /** Whether the options of an OPT record are readable. */
  readonly sound: boolean
  readonly opt: ReadOpt
  readonly next: number
}

function readRecord(message: Uint8Array, view: DataView, at: number): ReadRecord | undefined {
  const owner = readLabels(message, at)
  if (owner === undefined || owner.next + 10 > message.length) return undefined
  const next = owner.next + 10 + view.getUint16(owner.next + 8)
  if (next > message.length) return undefined
  const opt = {
    udpSize: view.getUint16(owner.next + 2),
    version: view.getUint8(owner.next + 5),
    dnssecOk: view.getUint8(owner.next + 6) >= 128,
  }
  const options = message.subarray(owner.next + 10, next)
  const sound = opt.version > 0 || areOptions(options)
  return { type: view.getUint16(owner.next), sound, opt, next }
}

/** Whether options fill the octets exactly. A cookie has 8 octets or 16 to 40 (RFC 7873 4). */
function areOptions(octets: Uint8Array): boolean {
  if (octets.length === 0) return true
  if (octets.length < 4) return false
  const view = viewOf(octets)
  const size = view.getUint16(2)
  const cookie = view.getUint16(0) === COOKIE
  if (octets.length < 4 + size || (cookie && size !== 8 && (size < 16 || size > 40))) return false
  return areOptions(octets.subarray(4 + size))
}
