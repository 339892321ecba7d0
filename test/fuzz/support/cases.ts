// The messages of cases: queries of clients, answers of the server, and strays that answer no query. Everything of case n comes from the
// seed and n, so a case can run again without the others.

import {
  A,
  AAAA,
  ANSWER_FLAGS,
  CNAME,
  concat,
  layMessage,
  opt,
  option,
  QUERY_FLAGS,
  wireName,
  type Field,
  type Laid,
  type MkRecord,
} from '../../support/messages.ts'
import { mutateField, mutateOctets, randomAnswer } from '../../support/models/mutate.ts'
import type { ReadQuery } from '../../support/models/query-oracle.ts'
import { Random } from '../../support/models/random.ts'
import { SUFFIXES, UDP_MESSAGE_MAX } from './world.ts'

/** The random numbers of case n. */
export function randomOf(seed: number, number: number): Random {
  let mixed = (seed ^ Math.imul(number + 1, 0x9e3779b1)) >>> 0
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b)
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35)
  return new Random((mixed ^ (mixed >>> 16)) >>> 0)
}

/** Labels that no other case has. `below`: one of the first so many suffixes. */
export function freshName(random: Random, number: number, below = SUFFIXES.length): string[] {
  const tail = random.pick(['', '', 'z', '-', '_z'])
  return [`q${number.toString(36)}${tail}`, ...(SUFFIXES[random.below(below)] ?? [])]
}

/** A well-formed query for the name. */
export function mkQuery(random: Random, labels: readonly string[]): Laid {
  const name = labels.map((label) =>
    label.replace(/[a-z]/g, (letter) => (random.oneIn(4) ? letter.toUpperCase() : letter)),
  )
  const type = random.pick([A, A, A, AAAA, AAAA, 255, CNAME, 65])
  const question = { name, type, class: random.oneIn(40) ? 3 : 1 }
  return layMessage({
    id: random.below(0x10000),
    flags: QUERY_FLAGS | random.pick([0, 0, 0x10, 0x20, 0x30, 0x40]),
    questions: [question],
    additionals: random.oneIn(3) ? [] : [mkOpt(random)],
  })
}

function mkOpt(random: Random): MkRecord {
  const parts: Uint8Array[] = []
  if (random.oneIn(3)) parts.push(option(10, random.octets(random.pick([8, 16, 24, 40]))))
  if (random.oneIn(6)) parts.push(option(random.below(20) + 11, random.octets(random.below(9))))
  return opt({
    udpSize: random.pick([0, 512, 1232, 1232, 4096, 65535]),
    flags: random.pick([0, 0x8000]),
    options: concat(...parts),
  })
}

/** A spoiled query. */
export function spoilQuery(random: Random, laid: Laid): Uint8Array {
  if (random.oneIn(15)) return misuseOpt(random, laid.octets)
  if (random.oneIn(400)) return withZeros(laid.octets, UDP_MESSAGE_MAX + 1 + random.below(900))
  if (random.oneIn(25)) return addQuestion(laid.octets, ['x', 'example'])
  if (random.oneIn(25)) return random.octets(random.below(60))
  return random.oneIn(3) ? mutateOctets(random, laid.octets) : changeField(random, laid)
}

function withZeros(octets: Uint8Array, length: number): Uint8Array {
  const longer = new Uint8Array(length)
  longer.set(octets)
  return longer
}

/** The question with a misused OPT: a cookie of a wrong size, in another section, twice, of version 1. */
function misuseOpt(random: Random, octets: Uint8Array): Uint8Array {
  const end = octets.indexOf(0, 12) + 5
  const size = random.pick([0, 7, 8, 9, 15, 16, 40, 41])
  const options = random.oneIn(2) ? option(10, random.octets(size)) : new Uint8Array(0)
  const record = opt({ options, version: random.oneIn(6) ? 1 : 0 })
  const sections = random.pick([
    { answers: [record] },
    { authorities: [record] },
    { additionals: [record, record] },
    { additionals: [record] },
    { additionals: [record] },
  ])
  const made = layMessage({
    questions: [{ name: { raw: octets.slice(12, end - 4) } }],
    ...sections,
  })
  made.octets.set(octets.subarray(0, 4))
  made.octets.set(octets.subarray(end - 4, end), end - 4)
  return made.octets
}

/** Sets QDCOUNT to 2 and adds a second question in its place, after a first one without EDNS. */
function addQuestion(octets: Uint8Array, labels: readonly string[]): Uint8Array {
  const end = octets.indexOf(0, 12) + 5
  const more = concat(octets.subarray(0, end), wireName(labels), Uint8Array.of(0, 1, 0, 1))
  more.set([0, 2, 0, 0, 0, 0, 0, 0], 4)
  return more
}

/** Changes one field to another value. */
export function changeField(random: Random, laid: Laid): Uint8Array {
  for (;;) {
    const changed = mutateField(random, laid)
    if (Buffer.compare(changed, laid.octets) !== 0) return changed
  }
}

const GUARDED_4 = ['127.0.0.53', '169.254.169.254', '10.66.1.2', '0.0.0.0', '224.0.0.251'].map(
  (address) => address.split('.').map(Number),
)
/** First groups of IPv6 addresses, followed by zeros: plain, guarded, or with an IPv4 address inside. */
const HEADS_6: readonly (readonly number[])[] = [
  [0xfe, 0x80],
  [0xff, 0x02],
  [0x20, 0x01, 0x0d, 0xb8, 0, 0x66],
  [0x20, 0x01, 0x0d, 0xb8, 0, 0x67],
  [0x00, 0x64, 0xff, 0x9b, 0, 1, 0x7f, 0, 0, 0, 1],
  [],
]
const EMBEDDING_6: readonly (readonly number[])[] = [
  [0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0],
  [0, 0x64, 0xff, 0x9b, 0, 1, 0xff, 0xfe, 0, 0, 0, 0],
  [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff],
  [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
  [0x20, 0x02],
]

/** A well-formed answer to the query with that id. It has more kinds of addresses than the mutator's own answers. */
export function mkAnswer(random: Random, read: ReadQuery, id: number): Laid {
  if (random.oneIn(30)) return mkBareAnswer(random, id)
  const { labels, type } = read
  const plain = randomAnswer(random, { labels, type, class: read.class })
  const laid = random.oneIn(200) ? pad(plain, random.pick([400, 1000, 3500, 6000, 30_000])) : plain
  laid.octets.set([id >> 8, id & 255])
  laid.fields.forEach((field, i) => {
    if (field.kind === 'rdata' && random.oneIn(2))
      plantAddress(random, laid, field, laid.fields[i - 4])
  })
  return laid
}

/** Adds one record of that RDATA size after all others. */
function pad({ octets, fields }: Laid, length: number): Laid {
  const data = new Uint8Array(length)
  const record = [0, 0, 16, 0, 1, 0, 0, 0, 60, length >> 8, length & 255]
  const longer = Buffer.from(concat(octets, Uint8Array.from(record), data))
  longer.writeUInt16BE(longer.readUInt16BE(10) + 1, 10)
  return { octets: Uint8Array.from(longer), fields }
}

/** An answer without a question, like that of a server that did not understand the query. Some pass, others answer no query. */
function mkBareAnswer(random: Random, id: number): Laid {
  const rcode = random.pick([0, 1, 1, 2, 3, 4, 5, 9])
  const additionals = random.oneIn(2) ? [opt()] : []
  return layMessage({ id, flags: ANSWER_FLAGS | rcode, additionals })
}

function plantAddress(random: Random, { octets }: Laid, data: Field, type: Field | undefined) {
  const kind = type?.kind === 'type' ? octets[type.at + 1] : 0
  const four = random.oneIn(4)
    ? random.pick(GUARDED_4)
    : [198, 18 + random.below(2), random.below(256), random.below(256)]
  if (kind === A && data.size === 4) octets.set(four, data.at)
  if (kind !== AAAA || data.size !== 16) return
  if (random.oneIn(3)) {
    const plain = [0x20, 1, 0x0d, 0xb8, 0, 0, ...random.octets(10)]
    octets.set(plain, data.at)
  } else {
    const head = random.oneIn(3) ? random.pick(HEADS_6) : [...random.pick(EMBEDDING_6), ...four]
    octets.fill(0, data.at, data.at + 16)
    octets.set(head, data.at)
  }
}

/** A message for which no client waits, although it can look similar. `id`: one in use, or another. */
export function mkStray(random: Random, read: ReadQuery, id: number): Uint8Array {
  const idOf = random.oneIn(2) ? id : random.below(0x10000)
  const { octets } = mkAnswer(random, read, idOf)
  switch (random.below(4)) {
    case 0:
      return random.octets(random.below(80))
    case 1:
      return mutateOctets(random, mutateOctets(random, octets))
    case 2:
      // The same with another name.
      return mkAnswer(random, { ...read, labels: ['x', ...read.labels.slice(1)] }, idOf).octets
    default:
      return octets
  }
}
