// The rest of a message after addresses are removed from it, by a literal reading: takes the message apart into texts and lists, expands
// names, and filters the lists. The second opinion on dns/answer-strip.ts, which never takes a message apart.

import { readLabels } from './oracle.ts'
import { cut, readService } from './oracle-svcb.ts'

export interface Parts {
  readonly head: string
  readonly questions: readonly string[]
  readonly records: readonly PartRecord[]
}

export interface PartRecord {
  readonly section: number
  readonly owner: readonly string[]
  readonly type: number
  readonly class: number
  readonly ttl: number
  /** Octets as hex, names as labels. */
  readonly data: readonly (string | readonly string[])[]
  readonly rdata: Uint8Array
  /** A name in it is unreadable. */
  readonly isBroken: boolean
}

/** Whether an address is removed; it has 4 or 16 octets, and a mapped one has 4. */
export type Unwanted = (octets: Uint8Array) => boolean

/** The number of octets before the names of a type, and the number of names. */
const NAMES = new Map<number, readonly [before: number, names: number]>([
  ...[2, 3, 4, 5, 7, 8, 9, 12, 30, 39, 47].map((type) => [type, [0, 1]] as const),
  ...[6, 14, 17].map((type) => [type, [0, 2]] as const),
  ...[15, 18, 21, 36, 64, 65].map((type) => [type, [2, 1]] as const),
  ...[24, 46].map((type) => [type, [18, 1]] as const),
  [26, [2, 2]],
  [33, [6, 1]],
])

/** Undefined if the message is unreadable. */
export function partsOf(message: Uint8Array): Parts | undefined {
  if (message.length < 12) return undefined
  const view = new DataView(message.buffer, message.byteOffset, message.length)
  const questions: string[] = []
  const records: PartRecord[] = []
  let at = 12
  for (let i = 0; i < view.getUint16(4); i++) {
    const name = readLabels(message, at)
    if (name === undefined || name.next + 4 > message.length) return undefined
    questions.push(`${JSON.stringify(name.labels)} ${view.getUint32(name.next)}`)
    at = name.next + 4
  }
  for (let section = 1; section <= 3; section++) {
    for (let i = 0; i < view.getUint16(4 + section * 2); i++) {
      const owner = readLabels(message, at)
      if (owner === undefined || owner.next + 10 > message.length) return undefined
      const data = owner.next + 10
      const next = data + view.getUint16(owner.next + 8)
      if (next > message.length) return undefined
      const type = view.getUint16(owner.next)
      records.push({
        section,
        owner: owner.labels,
        type,
        class: view.getUint16(owner.next + 2),
        ttl: view.getUint32(owner.next + 4),
        ...dataOf(message, type, data, next),
        rdata: message.slice(data, next),
      })
      at = next
    }
  }
  if (at !== message.length) return undefined
  return { head: hex(message.subarray(0, 4)), questions, records }
}

function dataOf(
  message: Uint8Array,
  type: number,
  at: number,
  end: number,
): Pick<PartRecord, 'data' | 'isBroken'> {
  const [before, count] = NAMES.get(type) ?? [0, 0]
  if (at + before >= end) return { data: [hex(message.subarray(at, end))], isBroken: false }
  const parts: (string | readonly string[])[] = [hex(message.subarray(at, at + before))]
  at += before
  for (let i = 0; i < count; i++) {
    const name = readLabels(message.subarray(0, end), at)
    if (name === undefined) return { data: parts, isBroken: true }
    parts.push(name.labels)
    at = name.next
  }
  return { data: [...parts, hex(message.subarray(at, end))], isBroken: false }
}

/** The message without the unwanted addresses. With `stripsHints`, also without all hints. */
export function stripped(parts: Parts, stripsHints: boolean, unwanted: Unwanted): Parts {
  const lost = new Set<number>()
  const left = parts.records.flatMap((record) => {
    const kept = strippedRecord(record, stripsHints, unwanted)
    if (kept !== record) lost.add(record.type)
    return kept === undefined ? [] : [kept]
  })
  if (lost.size === 0) return parts
  const records = left.filter(({ type, rdata }) => {
    const covered = (rdata[0] ?? -1) * 256 + (rdata[1] ?? -1)
    return type !== 46 || rdata.length < 2 || !lost.has(covered)
  })
  const flags = parseInt(parts.head.slice(4), 16) & ~0x20
  return { ...parts, head: parts.head.slice(0, 4) + flags.toString(16).padStart(4, '0'), records }
}

function strippedRecord(
  record: PartRecord,
  stripsHints: boolean,
  unwanted: Unwanted,
): PartRecord | undefined {
  const { type, rdata } = record
  if (record.class !== 1) return record
  const size = type === 1 ? 4 : type === 28 ? 16 : 0
  if (size > 0) return rdata.length === size && unwanted(unmapped(rdata)) ? undefined : record
  if (type !== 64 && type !== 65) return record
  const service = readService(rdata)
  if (service === undefined) return undefined
  const params = service.params.map(({ key, value }) => {
    if (key !== 4 && key !== 6) return { key, value, isGone: false }
    const all = cut(value, key === 4 ? 4 : 16)
    const left = all.filter((address) => !stripsHints && !unwanted(unmapped(address)))
    return {
      key,
      value: Uint8Array.from(left.flatMap((each) => [...each])),
      isGone: left.length === 0,
    }
  })
  const gone = params.filter(({ isGone }) => isGone).map(({ key }) => key)
  const octets = [...service.head]
  for (const { key, value } of params) {
    let left = [...value]
    if (key === 0) {
      left = []
      for (let i = 0; i < value.length; i += 2) {
        const pair = [...value.slice(i, i + 2)]
        if (pair.length < 2 || !gone.includes((pair[0] ?? 0) * 256 + (pair[1] ?? 0)))
          left.push(...pair)
      }
    }
    // A list that was already empty has lost nothing.
    if (gone.includes(key) || (key === 0 && left.length === 0 && value.length > 0)) continue
    octets.push(key >> 8, key & 255, left.length >> 8, left.length & 255, ...left)
  }
  const changed = Uint8Array.from(octets)
  if (hex(changed) === hex(rdata)) return record
  return { ...record, rdata: changed, ...dataOf(changed, type, 0, changed.length) }
}

function unmapped(octets: Uint8Array): Uint8Array {
  const head = hex(octets.subarray(0, 12))
  return octets.length === 16 && head === '00000000000000000000ffff' ? octets.slice(12) : octets
}

function hex(octets: Uint8Array): string {
  return Buffer.from(octets).toString('hex')
}
