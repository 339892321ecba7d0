// Random answers to a question, and ways to spoil them. A seeded Random makes everything, so a message can be made again from the seed
// and its number. The property test and the long run share this file.

import {
  A,
  AAAA,
  ANSWER_FLAGS,
  CNAME,
  DNAME,
  HTTPS,
  SVCB,
  concat,
  layMessage,
  opt,
  option,
  service,
  wireName,
  type Field,
  type Laid,
  type MkRecord,
} from '../messages.ts'
import type { Random } from './random.ts'

export interface AskedQuestion {
  readonly labels: readonly string[]
  readonly type: number
  readonly class: number
}

/** Names in answers: few, so that chains, forks and loops meet. Some differ only in the place where a label ends. */
const OTHERS: readonly (readonly string[])[] = [
  ['a', 'example'],
  ['b', 'example'],
  ['c', 'b', 'example'],
  ['a.b', 'example'],
  ['www', 'example', 'net'],
  ['\u0000\u00ff', 'net'],
  [],
]
const TYPES = [A, A, A, AAAA, AAAA, CNAME, CNAME, DNAME, 2, 6, 15, 16, 33, 41, 46, 64, 65, 65280]

export function randomQuestion(random: Random): AskedQuestion {
  const labels = random.oneIn(3)
    ? random.pick(OTHERS)
    : [`h${random.below(1000)}`, 'example', 'com']
  return {
    labels,
    type: random.pick([A, A, AAAA, 255, CNAME, 65]),
    class: random.oneIn(30) ? 3 : 1,
  }
}

/** A well-formed answer to the question: mostly a chain with addresses at its end, in any order. */
export function randomAnswer(random: Random, question: AskedQuestion): Laid {
  const asked = recase(random, question.labels)
  const records = randomChain(random, question.labels)
  while (random.oneIn(2)) records.push(randomRecord(random, question.labels))
  if (random.oneIn(2)) records.sort(() => (random.oneIn(2) ? 1 : -1))
  const rcode = random.oneIn(12) ? random.below(16) : 0
  return layMessage({
    id: random.below(0x10000),
    flags: ANSWER_FLAGS | rcode | (random.oneIn(10) ? 0x0200 : 0),
    questions: [{ name: asked, type: question.type, class: question.class }],
    answers: records,
    authorities: random.oneIn(4) ? [randomRecord(random, question.labels)] : [],
    additionals: [
      ...(random.oneIn(4) ? [randomRecord(random, question.labels)] : []),
      ...(random.oneIn(2) ? [randomOpt(random)] : []),
    ],
    compress: !random.oneIn(4),
  })
}

/** 0 to 3 links, rarely up to 18, and addresses at one of its names. */
function randomChain(random: Random, labels: readonly string[]): MkRecord[] {
  const records: MkRecord[] = []
  let owner = labels
  const links = random.oneIn(20) ? 14 + random.below(5) : random.below(4)
  for (let i = 0; i < links; i++) {
    const target = links > 3 ? [`l${i}`, 'cdn'] : random.pick(OTHERS)
    records.push({
      owner: recase(random, owner),
      type: CNAME,
      ttl: randomTtl(random),
      data: { name: target },
    })
    owner = target
  }
  for (let i = 1 + random.below(4); i > 0; i--)
    records.push(randomAddress(random, recase(random, owner)))
  return records
}

function randomAddress(random: Random, owner: readonly string[]): MkRecord {
  const ttl = randomTtl(random)
  if (random.oneIn(5)) return { owner, type: HTTPS, ttl, data: randomService(random) }
  const type = random.oneIn(2) ? A : AAAA
  return { owner, type, ttl, data: randomAddressOf(random, type) }
}

function randomAddressOf(random: Random, type: number): Uint8Array {
  const low = random.below(4)
  if (type === A) return Uint8Array.of(192, 0, 2, low)
  const mapped = [...new Uint8Array(10), 255, 255, 192, 0, 2, low]
  const plain = [0x20, 1, 0x0d, 0xb8, ...new Uint8Array(11), low]
  return Uint8Array.from(random.oneIn(6) ? mapped : plain)
}

function randomRecord(random: Random, labels: readonly string[]): MkRecord {
  const owner = random.oneIn(2) ? labels : random.pick(OTHERS)
  const type = random.pick(TYPES)
  const rclass = random.oneIn(8) ? random.pick([3, 254, 255]) : 1
  const ttl = randomTtl(random)
  if (type === CNAME || type === DNAME || type === 2) {
    return {
      owner,
      type,
      class: rclass,
      ttl,
      data: { name: random.oneIn(3) ? labels : random.pick(OTHERS) },
    }
  }
  if (type === SVCB || type === HTTPS) {
    return { owner, type, class: rclass, ttl, data: randomService(random) }
  }
  const before = { 15: 2, 33: 6, 46: 18 }[type]
  if (before !== undefined) {
    // The first two octets of an RRSIG are the type covered.
    const covered = type === 46 ? [0, random.pick([A, AAAA, HTTPS])] : []
    const front = concat(Uint8Array.from(covered), random.octets(before - covered.length))
    const after = type === 46 ? random.octets(8) : new Uint8Array(0)
    return {
      owner,
      type,
      class: rclass,
      ttl,
      data: { before: front, name: random.pick(OTHERS), after },
    }
  }
  const size = type === A ? 4 : type === AAAA ? 16 : random.below(24)
  return {
    owner,
    type,
    class: rclass,
    ttl,
    data: random.octets(random.oneIn(8) ? random.below(20) : size),
  }
}

/** Mostly well-formed parameters. Their hints use the addresses of A and AAAA. Some parts are wrong on purpose. */
function randomService(random: Random): Uint8Array {
  const keys = [0, 1, 3, 4, 4, 5, 6, 6, 7, 0xfde8].filter(() => random.oneIn(2))
  const params = [...new Set(keys)].map((key) => [key, randomParam(random, key)] as const)
  if (random.oneIn(16)) params.reverse()
  const target = random.oneIn(24) ? { raw: Uint8Array.of(0xc0, 12) } : random.pick(OTHERS)
  const octets = service(random.pick([0, 1, 1, 2, 0xffff]), target, params)
  return random.oneIn(16) ? octets.subarray(0, random.below(octets.length + 1)) : octets
}

function randomParam(random: Random, key: number): readonly number[] {
  if (key === 0) return [0, 4, 0, 6].slice(0, random.pick([2, 4, 4]))
  if (key !== 4 && key !== 6) return [...random.octets(random.below(6))]
  const type = key === 4 ? A : AAAA
  const hints: number[] = []
  for (let i = random.pick([1, 1, 2, 3, random.oneIn(4) ? 0 : 1]); i > 0; i--)
    hints.push(...randomAddressOf(random, type))
  return random.oneIn(20) ? hints.slice(1) : hints
}

function randomOpt(random: Random): MkRecord {
  const options = random.oneIn(3)
    ? option(random.below(16), random.octets(random.below(9)))
    : new Uint8Array(0)
  return opt({ extendedRcode: random.oneIn(16) ? 1 : 0, flags: random.pick([0, 0x8000]), options })
}

function randomTtl(random: Random): number {
  return random.pick([0, 1, 30, 60, 300, 86400, 0x7fffffff, 0x80000000, 0xffffffff])
}

function recase(random: Random, labels: readonly string[]): readonly string[] {
  if (!random.oneIn(3)) return labels
  return labels.map((label) =>
    label.replace(/[a-z]/g, (c) => (random.oneIn(2) ? c.toUpperCase() : c)),
  )
}

/** Changes one field of a well-formed message. The lengths and counts around it stay unchanged. */
export function mutateField(random: Random, { octets, fields }: Laid): Uint8Array {
  const field = random.pick(fields.filter(({ size }) => size > 0))
  const changed = octets.slice()
  if (random.oneIn(8)) return resizeField(random, octets, field)
  switch (field.kind) {
    case 'type':
    case 'question-type':
      putNumber(changed, field, random.pick(TYPES))
      break
    case 'class':
    case 'question-class':
      putNumber(changed, field, random.pick([0, 1, 1, 3, 254, 255, 0x8001]))
      break
    case 'ttl':
      putNumber(changed, field, random.oneIn(2) ? randomTtl(random) : random.next())
      break
    case 'count':
    case 'rdlength':
      putNumber(changed, field, nearNumber(random, getNumber(octets, field)))
      break
    case 'id':
    case 'flags':
    case 'question-name':
    case 'owner':
    case 'rdata':
      changeOctet(random, changed, field)
  }
  return changed
}

/** Removes octets from a field, or adds some. */
function resizeField(random: Random, octets: Uint8Array, field: Field): Uint8Array {
  const cut = field.at + random.below(field.size)
  return random.oneIn(2)
    ? concat(octets.subarray(0, cut), octets.subarray(cut + 1))
    : concat(octets.subarray(0, cut), random.octets(1 + random.below(3)), octets.subarray(cut))
}

function changeOctet(random: Random, octets: Uint8Array, field: Field): void {
  const at = field.at + random.below(field.size)
  const before = octets[at] ?? 0
  const values = [
    before ^ (1 << random.below(8)),
    before + 1,
    before - 1,
    0,
    0xc0,
    0xff,
    random.below(256),
  ]
  octets[at] = random.pick(values)
  // A pointer to any place: forward, into the header, or into the middle of a label.
  if (
    (field.kind === 'owner' || field.kind === 'rdata') &&
    random.oneIn(4) &&
    at + 1 < octets.length
  ) {
    const target = random.below(octets.length + 4)
    octets[at] = 0xc0 | (target >> 8)
    octets[at + 1] = target & 255
  }
}

function nearNumber(random: Random, value: number): number {
  return (
    random.pick([value + 1, value - 1, 0, 2 * value, 3, 5, 15, 17, 0xffff, random.below(0x10000)]) &
    0xffff
  )
}

function getNumber(octets: Uint8Array, field: Field): number {
  return octets.subarray(field.at, field.at + field.size).reduce((n, octet) => n * 256 + octet, 0)
}

function putNumber(octets: Uint8Array, field: Field, value: number): void {
  for (let i = field.size - 1, rest = value; i >= 0; i--, rest = Math.floor(rest / 256))
    octets[field.at + i] = rest
}

/** Spoils a message at random places: flips, cuts, repeats, random octets. */
export function mutateOctets(random: Random, octets: Uint8Array): Uint8Array {
  switch (random.below(6)) {
    case 0:
      return octets.slice(0, random.below(octets.length + 1))
    case 1:
      return concat(octets, random.octets(1 + random.below(12)))
    case 2: {
      const [from, to] = [random.below(octets.length), random.below(octets.length)]
      return concat(octets.subarray(0, to), octets.subarray(from, from + 16), octets.subarray(to))
    }
    case 3:
      return random.octets(random.below(80))
    case 4:
      return concat(octets, wireName(['x']), random.octets(10))
    default: {
      const changed = octets.slice()
      for (let i = 1 + random.below(4); i > 0; i--)
        changed[random.below(changed.length)] = random.below(256)
      return changed
    }
  }
}
