// Builds DNS messages octet by octet, well-formed or not, with or without compression. Records the position of each field, so that a
// mutator can aim at it. Uses nothing of src and no package.

/** Dotted text without escapes, separate labels (Latin-1), or octets that are written unchanged. */
export type Name = string | readonly string[] | { readonly raw: Uint8Array }

export interface MkQuestion {
  readonly name: Name
  readonly type?: number
  readonly class?: number
}

export interface MkRecord {
  readonly owner: Name
  readonly type: number
  /** Default IN. */
  readonly class?: number
  /** Default 300. */
  readonly ttl?: number
  /** RDATA as octets, or a name in it, with octets before and after it. */
  readonly data:
    | Uint8Array
    | { readonly name: Name; readonly before?: Uint8Array; readonly after?: Uint8Array }
  /** Written in place of the true RDLENGTH. */
  readonly rdlength?: number
}

export interface MkMessage {
  readonly id?: number
  /** The 16 bits after the id. */
  readonly flags?: number
  readonly questions?: readonly MkQuestion[]
  readonly answers?: readonly MkRecord[]
  readonly authorities?: readonly MkRecord[]
  readonly additionals?: readonly MkRecord[]
  /** Written in place of the true counts. */
  readonly counts?: readonly [qd: number, an: number, ns: number, ar: number]
  /** Octets after the last record. */
  readonly trailing?: Uint8Array
  /** Names point to earlier ones; default true. */
  readonly compress?: boolean
}

/** A field of a message: `size` octets at `at`. */
export interface Field {
  readonly kind: FieldKind
  readonly at: number
  readonly size: number
}

export type FieldKind =
  | 'id'
  | 'flags'
  | 'count'
  | 'question-name'
  | 'question-type'
  | 'question-class'
  | 'owner'
  | 'type'
  | 'class'
  | 'ttl'
  | 'rdlength'
  | 'rdata'

export interface Laid {
  readonly octets: Uint8Array
  readonly fields: readonly Field[]
}

export const QUERY_FLAGS = 0x0100
export const ANSWER_FLAGS = 0x8180
export const A = 1
export const CNAME = 5
export const AAAA = 28
export const DNAME = 39
export const OPT = 41
export const SVCB = 64
export const HTTPS = 65

export function mkMessage(message: MkMessage): Uint8Array {
  return layMessage(message).octets
}

/** A query with RD for one name. `change` can replace any part. */
export function mkQuery(name: Name, type = A, change: MkMessage = {}): Uint8Array {
  return mkMessage({ id: 0x1234, flags: QUERY_FLAGS, questions: [{ name, type }], ...change })
}

/** The answer to `mkQuery(name, type)` with these records. */
export function mkAnswer(
  name: Name,
  type: number,
  answers: readonly MkRecord[],
  change: MkMessage = {},
): Uint8Array {
  const questions = [{ name, type }]
  return mkMessage({ id: 0x1234, flags: ANSWER_FLAGS, questions, answers, ...change })
}

export function a(owner: Name, address: string, ttl = 300): MkRecord {
  return { owner, type: A, ttl, data: Uint8Array.from(address.split('.'), Number) }
}

/** `groups`: eight numbers. */
export function aaaa(owner: Name, groups: readonly number[], ttl = 300): MkRecord {
  return { owner, type: AAAA, ttl, data: Uint8Array.from(groups.flatMap((g) => [g >> 8, g & 255])) }
}

export function cname(owner: Name, target: Name, ttl = 300): MkRecord {
  return { owner, type: CNAME, ttl, data: { name: target } }
}

/** RDATA of SVCB or HTTPS (RFC 9460 2.2), with keys and values in the order of `params`. */
export function service(
  priority: number,
  target: Name,
  params: readonly (readonly [key: number, value: readonly number[]])[] = [],
): Uint8Array {
  const name = typeof target === 'object' && 'raw' in target ? target.raw : wireName(target)
  const values = params.map(([key, value]) => option(key, Uint8Array.from(value)))
  return concat(Uint8Array.of(priority >> 8, priority & 255), name, ...values)
}

export function https(owner: Name, data: Uint8Array, ttl = 300): MkRecord {
  return { owner, type: HTTPS, ttl, data }
}

export function text(value: string): Uint8Array {
  const octets = new Uint8Array(value.length)
  for (let i = 0; i < value.length; i++) octets[i] = value.charCodeAt(i)
  return octets
}

export interface MkOpt {
  readonly owner?: Name
  readonly udpSize?: number
  readonly extendedRcode?: number
  readonly version?: number
  /** DO and Z, 16 bits. */
  readonly flags?: number
  readonly options?: Uint8Array
  readonly rdlength?: number
}

export function opt(change: MkOpt = {}): MkRecord {
  const { extendedRcode = 0, version = 0, flags = 0 } = change
  return {
    owner: change.owner ?? '',
    type: OPT,
    class: change.udpSize ?? 1232,
    ttl: extendedRcode * 2 ** 24 + version * 2 ** 16 + flags,
    data: change.options ?? new Uint8Array(0),
    ...(change.rdlength === undefined ? {} : { rdlength: change.rdlength }),
  }
}

/** One EDNS option. `length` can differ from the true length. */
export function option(code: number, value: Uint8Array, length = value.length): Uint8Array {
  return Uint8Array.of(code >> 8, code & 255, length >> 8, length & 255, ...value)
}

export function concat(...parts: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0))
  let at = 0
  for (const part of parts) {
    whole.set(part, at)
    at += part.length
  }
  return whole
}

/** A name as labels; `''` and `'.'` are the root. */
export function labelsOf(name: string | readonly string[]): readonly string[] {
  return typeof name === 'string' ? name.split('.').filter((label) => label !== '') : name
}

/** Wire octets of a name, without compression, in its own case. */
export function wireName(name: string | readonly string[]): Uint8Array {
  return concat(
    ...labelsOf(name).map((label) => concat(Uint8Array.of(label.length), text(label))),
    Uint8Array.of(0),
  )
}

/** The message and its fields. */
export function layMessage(message: MkMessage): Laid {
  const writer = new Writer(message.compress ?? true)
  const { questions = [], answers = [], authorities = [], additionals = [] } = message
  writer.u16('id', message.id ?? 0)
  writer.u16('flags', message.flags ?? 0)
  const lists = [questions, answers, authorities, additionals]
  lists.forEach((list, i) => writer.u16('count', message.counts?.[i] ?? list.length))
  for (const question of questions) {
    writer.name('question-name', question.name)
    writer.u16('question-type', question.type ?? A)
    writer.u16('question-class', question.class ?? 1)
  }
  for (const record of [...answers, ...authorities, ...additionals]) writer.record(record)
  return { octets: writer.done(message.trailing), fields: writer.fields }
}

class Writer {
  readonly fields: Field[] = []
  readonly #octets: number[] = []
  readonly #compress: boolean
  /** The position at which a name was written, by its labels as JSON in their own case. */
  readonly #known = new Map<string, number>()

  constructor(compress: boolean) {
    this.#compress = compress
  }

  u16(kind: FieldKind, value: number): void {
    this.#field(kind, [value >>> 8, value & 255])
  }

  name(kind: FieldKind, name: Name): void {
    this.#field(kind, this.#nameOctets(name))
  }

  record(record: MkRecord): void {
    this.name('owner', record.owner)
    this.u16('type', record.type)
    this.u16('class', record.class ?? 1)
    const ttl = record.ttl ?? 300
    this.#field('ttl', [ttl >>> 24, (ttl >>> 16) & 255, (ttl >>> 8) & 255, ttl & 255])
    const lengthAt = this.#octets.length
    this.u16('rdlength', 0)
    const { data } = record
    if (data instanceof Uint8Array) {
      this.#field('rdata', [...data])
    } else {
      if (data.before !== undefined) this.#field('rdata', [...data.before])
      this.#field('rdata', this.#nameOctets(data.name))
      if (data.after !== undefined) this.#field('rdata', [...data.after])
    }
    const rdlength = record.rdlength ?? this.#octets.length - lengthAt - 2
    this.#octets[lengthAt] = rdlength >>> 8
    this.#octets[lengthAt + 1] = rdlength & 255
  }

  done(trailing: Uint8Array = new Uint8Array(0)): Uint8Array {
    return concat(Uint8Array.from(this.#octets), trailing)
  }

  #field(kind: FieldKind, octets: readonly number[]): void {
    this.fields.push({ kind, at: this.#octets.length, size: octets.length })
    for (const octet of octets) this.#octets.push(octet)
  }

  /** The octets of the next name. */
  #nameOctets(name: Name): number[] {
    if (typeof name === 'object' && 'raw' in name) return [...name.raw]
    const labels = labelsOf(name)
    const octets: number[] = []
    for (let i = 0; i < labels.length; i++) {
      const key = JSON.stringify(labels.slice(i))
      const known = this.#compress ? this.#known.get(key) : undefined
      if (known !== undefined) return [...octets, 0xc0 | (known >>> 8), known & 255]
      const at = this.#octets.length + octets.length
      if (at < 0x4000 && !this.#known.has(key)) this.#known.set(key, at)
      const label = labels[i] ?? ''
      octets.push(label.length)
      for (const octet of text(label)) octets.push(octet)
    }
    return [...octets, 0]
  }
}
