// The plain part of YAML, read fast: block mappings and lists, flow collections that end on their line, plain and quoted scalars
// without escapes, comments and blank lines. For everything else (anchors, tags, block scalars, empty values, repeated keys,
// scalars that may be other than a text or a small number) the reader returns nothing, and the caller asks the whole reader. What
// this reader returns, the whole reader returns too (test/documents/quick-yaml.test.ts). A mapping of three fields takes 2 us,
// the whole reader 140.

/** Where a list or mapping begins, and what is in it, in the order in which it is written: offsets in the text. */
export interface QuickPlace {
  readonly start: number
  readonly inside: number[]
}

/** Of every list and mapping that was read. */
export type QuickPlaces = Map<unknown, QuickPlace>

/** What is read, or undefined: this is for the whole reader. Places are noted where they are wanted. */
export function readQuickYaml(text: string, places?: QuickPlaces): unknown {
  return new QuickYaml(text, places).read()
}

/** Says of a value that it is for the whole reader. */
const OTHER = Symbol('other')

const DEPTH_MAX = 16
const DASH = /- +/y
const BLANK = 0x20
/** What is empty or a comment below the line goes with it. */
const LINE_END = / *\n(?: *(?:#[^\n\r\t]*)?\n)*/y
const BEFORE = /(?: *(?:#[^\n\r\t]*)?\n)*/y
const KEY = /[A-Za-z_][\w./-]*(?::[\w./-]+)*/y
/** A colon only before what goes on. */
const PLAIN = /[A-Za-z_0-9][\w./-]*(?::+[\w./-]+)*/y
const DOUBLE = /"[^"\\\n\r\t]*"/y
const SINGLE = /'[^'\n\r\t]*'/y
/** What a schema may take for something else than a text. */
const WORD = /^(?:true|false|null|yes|no|on|off|y|n|inf|nan)$/i
const NUMBER = /^[1-9][0-9]{0,8}$/
/** Digits first, and certainly no number: three parts with dots, or with a colon. */
const ADDRESS = /^[0-9]+\.[0-9]+\.[0-9]|^[0-9A-Fa-f]+:/

class QuickYaml {
  readonly #text: string
  #at = 0
  #depth = 0

  readonly #places: QuickPlaces | undefined

  constructor(text: string, places: QuickPlaces | undefined) {
    this.#text = `${text.replace(/[ \n]+$/, '')}\n`
    this.#places = places
  }

  read(): unknown {
    this.#skip(BEFORE)
    const value = this.#is('{') || this.#is('[') ? this.#flow() : this.#block(this.#indent())
    return value === OTHER || this.#at !== this.#text.length ? undefined : value
  }

  /** A flow collection that is all there is. */
  #flow(): unknown {
    const value = this.#inline()
    return this.#skip(LINE_END) ? value : OTHER
  }

  /** The value that begins `indent` columns in on the line that is next, all lines that belong to it taken. */
  #block(indent: number): unknown {
    if (this.#depth === DEPTH_MAX) return OTHER
    this.#depth++
    this.#at += indent
    const value = this.#is('-') ? this.#list(indent) : this.#mapping(indent)
    this.#depth--
    return value
  }

  #list(indent: number): unknown {
    const items: unknown[] = []
    const place = this.#note(items)
    do {
      const begin = this.#at
      if (!this.#skip(DASH)) return OTHER
      place?.inside.push(this.#at)
      const item = this.#item(indent + this.#at - begin)
      if (item === OTHER) return OTHER
      items.push(item)
    } while (this.#isNextAt(indent, true))
    return items
  }

  /** An entry of a list: what fits on its line, or a mapping that begins there. */
  #item(indent: number): unknown {
    const begin = this.#at
    const value = this.#inline()
    if (value !== OTHER && this.#skip(LINE_END)) return value
    this.#at = begin
    return this.#mapping(indent)
  }

  #mapping(indent: number): unknown {
    const mapping = newMapping()
    const place = this.#note(mapping)
    do {
      const key = this.#key()
      if (key === undefined || key in mapping || !this.#is(':')) return OTHER
      this.#at++
      const value = this.#valueOf(indent, place)
      if (value === OTHER) return OTHER
      mapping[key] = value
    } while (this.#isNextAt(indent, false))
    return mapping
  }

  /** What stands behind a key: on its line, or below it; a list may be as far in as its key. */
  #valueOf(indent: number, place: QuickPlace | undefined): unknown {
    if (!this.#skip(LINE_END)) {
      if (!this.#blanks()) return OTHER
      place?.inside.push(this.#at)
      const value = this.#inline()
      return value === OTHER || !this.#skip(LINE_END) ? OTHER : value
    }
    const next = this.#indent()
    place?.inside.push(this.#at + next)
    const isDeeper = next > indent || (next === indent && this.#text[this.#at + next] === '-')
    return isDeeper ? this.#block(next) : OTHER
  }

  /** Whether the next line has one more entry of the collection; then it is gone to. */
  #isNextAt(indent: number, isList: boolean): boolean {
    if (this.#indent() !== indent) return false
    const next = this.#text[this.#at + indent]
    if (next === undefined || (next === '-') !== isList) return false
    this.#at += indent
    return true
  }

  #inline(): unknown {
    if (this.#is('{')) return this.#flowMapping()
    return this.#is('[') ? this.#flowList() : this.#scalar()
  }

  #flowList(): unknown {
    const items: unknown[] = []
    const place = this.#note(items)
    this.#at++
    if (this.#closes(']')) return items
    if (this.#depth === DEPTH_MAX) return OTHER
    this.#depth++
    do {
      this.#blanks()
      place?.inside.push(this.#at)
      const item = this.#inline()
      if (item === OTHER) return OTHER
      items.push(item)
    } while (this.#closes(','))
    this.#depth--
    return this.#closes(']') ? items : OTHER
  }

  #flowMapping(): unknown {
    const mapping = newMapping()
    const place = this.#note(mapping)
    this.#at++
    if (this.#closes('}')) return mapping
    if (this.#depth === DEPTH_MAX) return OTHER
    this.#depth++
    do {
      this.#blanks()
      const isQuoted = this.#is('"')
      const key = this.#key()
      if (key === undefined || key in mapping || !this.#is(':')) return OTHER
      this.#at++
      // Behind a quoted key the value may stand at once, as in JSON.
      if (!this.#blanks() && !isQuoted) return OTHER
      place?.inside.push(this.#at)
      const value = this.#inline()
      if (value === OTHER) return OTHER
      mapping[key] = value
    } while (this.#closes(','))
    this.#depth--
    return this.#closes('}') ? mapping : OTHER
  }

  #key(): string | undefined {
    const key = this.#is('"') ? this.#take(DOUBLE)?.slice(1, -1) : this.#take(KEY)
    // A number as a key is moved before the others, whose places would not be theirs any more.
    return key === undefined || WORD.test(key) || key < ':' ? undefined : key
  }

  #scalar(): unknown {
    if (this.#is('"')) return this.#take(DOUBLE)?.slice(1, -1) ?? OTHER
    if (this.#is("'")) return this.#take(SINGLE)?.slice(1, -1) ?? OTHER
    const text = this.#take(PLAIN)
    if (text === undefined) return OTHER
    if (text < ':') return this.#fromDigits(text)
    if (text === 'true' || text === 'false') return text === 'true'
    return WORD.test(text) ? OTHER : text
  }

  #fromDigits(text: string): unknown {
    if (ADDRESS.test(text)) return text
    return NUMBER.test(text) ? Number(text) : OTHER
  }

  /** Notes that a collection begins here. */
  #note(collection: object): QuickPlace | undefined {
    if (this.#places === undefined) return undefined
    const place = { start: this.#at, inside: [] }
    this.#places.set(collection, place)
    return place
  }

  /** Passes blanks; whether there were any. */
  #blanks(): boolean {
    const begin = this.#at
    while (this.#text.charCodeAt(this.#at) === BLANK) this.#at++
    return this.#at > begin
  }

  /** Passes the character and blanks before it, or nothing; whether it is there. */
  #closes(character: string): boolean {
    const begin = this.#at
    this.#blanks()
    if (this.#is(character)) this.#at++
    else this.#at = begin
    return this.#at > begin
  }

  /** Blanks at the beginning of the line. */
  #indent(): number {
    let count = 0
    while (this.#text.charCodeAt(this.#at + count) === BLANK) count++
    return count
  }

  #is(character: string): boolean {
    return this.#text[this.#at] === character
  }

  /** What the pattern matches here, which is then behind. */
  #take(pattern: RegExp): string | undefined {
    const begin = this.#at
    return this.#skip(pattern) ? this.#text.slice(begin, this.#at) : undefined
  }

  #skip(pattern: RegExp): boolean {
    pattern.lastIndex = this.#at
    if (!pattern.test(this.#text)) return false
    this.#at = pattern.lastIndex
    return true
  }
}

/** Without a prototype, so that no key can be taken for something inherited. */
function newMapping(): Record<string, unknown> {
  const mapping: Record<string, unknown> = {}
  Object.setPrototypeOf(mapping, null)
  return mapping
}
