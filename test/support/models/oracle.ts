// The addresses that an answer teaches, by a slow and literal reading of docs/spec/semantics 4 (hints by oracle-svcb.ts): the second
// opinion on dns/answer.ts. It has three steps. `dissect` is strict where dns-packet is not (docs/spec/correctness 0.1), and cuts the
// message into records. dns-packet reads type, class, TTL and address of each relevant record, which is written again alone and without
// compression. `teach` applies the rules.
// Names are arrays of Latin-1 labels, never dotted text.
//
// docs/spec/semantics leaves some readings open. They are decided here as in the product: 'class IN' holds for the question and the
// record; the RCODE counts the upper bits of every OPT record; a loop, a fork or a 17th link of the chain from the
// question name spoils the whole answer; a record's TTL is lowered by the links that lead to its owner.

import * as packet from 'dns-packet'
import { hintsOf } from './oracle-svcb.ts'

export interface OracleQuestion {
  readonly labels: readonly string[]
  readonly type: number
  readonly class: number
}

export type OracleVerdict =
  | { readonly kind: 'malformed' }
  | {
      readonly kind: 'ok'
      /** Header and question are those of a reply to the question. */
      readonly matches: boolean
      /** Address in RFC 5952 form, IPv4-mapped IPv6 as IPv4 -> TTL in seconds. */
      readonly taught: ReadonlyMap<string, number>
    }

interface CutRecord {
  readonly section: number
  readonly owner: readonly string[]
  readonly type: number
  readonly class: number
  /** From the type to the end of RDATA, unchanged. */
  readonly octets: Uint8Array
  readonly rdata: Uint8Array
  /** Only for a CNAME of class IN in the answer section. */
  readonly target: readonly string[]
}

interface Cut {
  readonly questions: readonly OracleQuestion[]
  readonly records: readonly CutRecord[]
}

export interface ReadName {
  readonly labels: readonly string[]
  readonly next: number
}

const JUMPS_MAX = 127

export function oracle(message: Uint8Array, question: OracleQuestion): OracleVerdict {
  const cut = dissect(message)
  if (cut === undefined) return { kind: 'malformed' }
  const matches = isReply(message) && cut.questions.length === 1 && sameQuestion(cut, question)
  const mayTeach = matches && rcodeOf(message, cut) === 0 && question.class === 1
  return { kind: 'ok', matches, taught: mayTeach ? teach(cut, question) : new Map() }
}

function isReply(message: Uint8Array): boolean {
  const octet = message[2] ?? 0
  return octet >= 128 && ((octet >> 3) & 15) === 0
}

function sameQuestion(cut: Cut, question: OracleQuestion): boolean {
  const asked = { ...question, labels: question.labels.map(lowerCase) }
  return JSON.stringify(cut.questions[0]) === JSON.stringify(asked)
}

function rcodeOf(message: Uint8Array, cut: Cut): number {
  let rcode = (message[3] ?? 0) & 15
  for (const record of cut.records) {
    if (record.type === 41) rcode |= (record.octets[4] ?? 0) * 16
  }
  return rcode
}

/** Cuts a message into questions and records. Undefined if an octet is missing, wrong or left over. */
function dissect(message: Uint8Array): Cut | undefined {
  if (message.length < 12) return undefined
  const view = new DataView(message.buffer, message.byteOffset, message.length)
  const questions: OracleQuestion[] = []
  const records: CutRecord[] = []
  let at = 12
  for (let i = 0; i < view.getUint16(4); i++) {
    const name = readLabels(message, at)
    if (name === undefined || name.next + 4 > message.length) return undefined
    const [type, qclass] = [view.getUint16(name.next), view.getUint16(name.next + 2)]
    questions.push({ labels: name.labels, type, class: qclass })
    at = name.next + 4
  }
  for (let section = 1; section <= 3; section++) {
    for (let i = 0; i < view.getUint16(4 + section * 2); i++) {
      const record = cutRecord(message, view, at, section)
      if (record === undefined) return undefined
      records.push(record.record)
      at = record.next
    }
  }
  return at === message.length ? { questions, records } : undefined
}

function cutRecord(
  message: Uint8Array,
  view: DataView,
  at: number,
  section: number,
): { record: CutRecord; next: number } | undefined {
  const owner = readLabels(message, at)
  if (owner === undefined || owner.next + 10 > message.length) return undefined
  const data = owner.next + 10
  const next = data + view.getUint16(owner.next + 8)
  if (next > message.length) return undefined
  const type = view.getUint16(owner.next)
  const rclass = view.getUint16(owner.next + 2)
  let target: readonly string[] = []
  if (section === 1 && type === 5 && rclass === 1) {
    const name = readLabels(message, data)
    if (name === undefined || name.next !== next) return undefined
    target = name.labels
  }
  const octets = message.slice(owner.next, next)
  const rdata = message.slice(data, next)
  return {
    record: { section, owner: owner.labels, type, class: rclass, octets, rdata, target },
    next,
  }
}

/** A name of at most 255 octets in lower case. Undefined if it is unreadable. */
export function readLabels(message: Uint8Array, at: number): ReadName | undefined {
  const name = followLabels(message, at, 0)
  const size = name?.labels.reduce((sum, label) => sum + label.length + 1, 1) ?? 0
  return size > 255 ? undefined : name
}

function followLabels(message: Uint8Array, first: number, jumps: number): ReadName | undefined {
  const labels: string[] = []
  let at = first
  for (;;) {
    const octet = message[at]
    if (octet === undefined) return undefined
    if (octet === 0) return { labels, next: at + 1 }
    if (octet >= 0xc0) {
      const low = message[at + 1]
      if (low === undefined || jumps === JUMPS_MAX) return undefined
      const target = (octet - 0xc0) * 256 + low
      if (target < 12 || target >= first) return undefined
      const rest = followLabels(message, target, jumps + 1)
      return rest && { labels: [...labels, ...rest.labels], next: at + 2 }
    }
    if (octet > 63 || at + 1 + octet > message.length) return undefined
    const label = Buffer.from(message.subarray(at + 1, at + 1 + octet)).toString('latin1')
    labels.push(lowerCase(label))
    at += 1 + octet
  }
}

function lowerCase(label: string): string {
  // Most labels are lower case already, and a test costs less than a replacement.
  return !/[A-Z]/.test(label) ? label : label.replace(/[A-Z]/g, (letter) => letter.toLowerCase())
}

function teach(cut: Cut, question: OracleQuestion): Map<string, number> {
  const taught = new Map<string, number>()
  const answers = cut.records.filter((record) => record.section === 1 && record.class === 1)
  const path = chainFrom(question.labels.map(lowerCase), answers)
  for (const record of answers) {
    const step = path?.find(({ name }) => name === JSON.stringify(record.owner))
    if (step === undefined) continue
    for (const address of addressesOf(record)) {
      const { ttl } = readAlone(record)
      const least = Math.min(step.ttl, ttl, taught.get(address) ?? Infinity)
      taught.set(address, least)
    }
  }
  return taught
}

function addressesOf(record: CutRecord): readonly string[] {
  if (record.type === 64 || record.type === 65) return hintsOf(record.rdata).map(canonical)
  const right =
    (record.type === 1 && record.rdata.length === 4) ||
    (record.type === 28 && record.rdata.length === 16)
  return right ? [readAlone(record).address] : []
}

/** The names of the chain from the question on, each with the lowest TTL of the links to it. Undefined if the chain is bad. */
function chainFrom(
  labels: readonly string[],
  answers: readonly CutRecord[],
): { name: string; ttl: number }[] | undefined {
  const path = [{ name: JSON.stringify(labels), ttl: Infinity }]
  for (;;) {
    const last = path[path.length - 1]
    if (last === undefined) return undefined
    const links = answers.filter((r) => r.type === 5 && JSON.stringify(r.owner) === last.name)
    if (links.length === 0) return path
    const targets = new Set(links.map((link) => JSON.stringify(link.target)))
    const [target = ''] = targets
    if (targets.size > 1 || path.some(({ name }) => name === target)) return undefined
    const ttl = Math.min(last.ttl, ...links.map((link) => readAlone(link).ttl))
    path.push({ name: target, ttl })
    if (path.length - 1 > 16) return undefined
  }
}

/** TTL and address as dns-packet reads them from the record alone, owned by the root. The target of a CNAME is cut off. */
function readAlone(record: CutRecord): { ttl: number; address: string } {
  const header = [0, 0, 0x80, 0, 0, 0, 0, 1, 0, 0, 0, 0]
  const root = 0
  const body = record.type === 5 ? [...record.octets.subarray(0, 8), 0, 1, root] : record.octets
  const answer = packet.decode(Buffer.from([...header, root, ...body])).answers?.[0]
  if (answer === undefined || answer.type === 'OPT') throw new Error('dns-packet read no record')
  const ttl = answer.ttl ?? 0
  const address = answer.type === 'A' || answer.type === 'AAAA' ? canonical(answer.data) : ''
  return { ttl: ttl >= 2 ** 31 ? 0 : ttl, address }
}

/** RFC 5952 form, by Node's URL parser; IPv4-mapped IPv6 as IPv4. */
function canonical(address: string): string {
  if (!address.includes(':')) return address
  const text = new URL(`http://[${address}]`).hostname.slice(1, -1)
  const [, high, low] = /^::ffff:([0-9a-f]+):([0-9a-f]+)$/.exec(text) ?? []
  if (high === undefined || low === undefined) return text
  const [h, l] = [parseInt(high, 16), parseInt(low, 16)]
  return `${h >> 8}.${h & 255}.${l >> 8}.${l & 255}`
}
