// `readQuickYaml` reads the plain part of YAML fast:
//   - block mappings and lists, and flow collections that end on their line;
//   - plain and quoted scalars without escapes;
//   - comments and blank lines.
// For everything else it returns undefined, and the caller uses the full reader (yaml-source.ts). This concerns anchors, tags, block
// scalars, empty values, repeated keys, and scalars that can be other than a text, true, false or a small number. Both readers return the
// same values (test/documents/quick-yaml.test.ts). A mapping of three fields takes 2 us, with the full reader 140 us.

/** Where a list or mapping begins (`start`) and where its values begin (`inside`, in written order), as offsets in the text. */
export interface QuickPlace {
  readonly start: number
  readonly inside: number[]
}

/** The place of every list and mapping. The key is the list or mapping itself. */
export type QuickPlaces = Map<unknown, QuickPlace>

/** Returns the value of a text, or undefined if the text needs the full reader. Fills `places`. */
export function readQuickYaml(text: string, places?: QuickPlaces): unknown {
  return new QuickYaml(text, places).read()
}

/** Stands for a value that needs the full reader. */
const OTHER = Symbol('other')

const DEPTH_MAX = 16
const DASH = /- +/y
const BLANK = 0x20
/** The end of a line, with the blank lines and comments below it. */
const LINE_END = / *\n(?: *(?:#[^\n\r\t]*)?\n)*/y
const BEFORE = /(?: *(?:#[^\n\r\t]*)?\n)*/y
const KEY = /[A-Za-z_][\w./-]*(?::[\w./-]+)*/y
/** A plain scalar. It can contain a colon, but not end with one. */
const PLAIN = /[A-Za-z_0-9][\w./-]*(?::+[\w./-]+)*/y
const DOUBLE = /"[^"\\\n\r\t]*"/y
const SINGLE = /'[^'\n\r\t]*'/y
/** Scalars that some YAML schema reads as another value than a text. */
const WORD = /^(?:true|false|null|yes|no|on|off|y|n|inf|nan)$/i
const NUMBER = /^[1-9][0-9]{0,8}$/
/** Texts that begin with digits and are no number for certain: three parts with dots, or a colon. */
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

  /** Reads a text that is one flow collection. */
  #flow(): unknown {
    const value = this.#inline()
    return this.#skip(LINE_END) ? value : OTHER
  }

  /** Reads the value that begins at column `indent` of the next line, with all its lines. */
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

  /** Reads an item of a list: a value on its line, or a mapping that begins on the line. */
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

  /** Reads the value after a key, on its line or below it. A list can have the indent of its key. */
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

  /** Moves to the next item of the collection. Returns false if there is none. */
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
      // After a quoted key, the value can follow without a blank, as in JSON.
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
    // JavaScript moves number keys to the front, which would mix up the places.
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

  /** Skips blanks. Returns true if there were any. */
  #blanks(): boolean {
    const begin = this.#at
    while (this.#text.charCodeAt(this.#at) === BLANK) this.#at++
    return this.#at > begin
  }

  /** Skips blanks and then the character, if the character follows. Returns true if it does. */
  #closes(character: string): boolean {
    const begin = this.#at
    this.#blanks()
    if (this.#is(character)) this.#at++
    else this.#at = begin
    return this.#at > begin
  }

  /** Counts the blanks at the beginning of the line. */
  #indent(): number {
    let count = 0
    while (this.#text.charCodeAt(this.#at + count) === BLANK) count++
    return count
  }

  #is(character: string): boolean {
    return this.#text[this.#at] === character
  }

  /** Returns the text that the pattern matches here, and skips it. */
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

/** Makes a mapping without a prototype, so that no key can be confused with an inherited property. */
function newMapping(): Record<string, unknown> {
  const mapping: Record<string, unknown> = {}
  Object.setPrototypeOf(mapping, null)
  return mapping
}
