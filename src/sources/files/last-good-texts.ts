// Texts of the files in force, kept over restarts: a daemon that starts with a broken file continues with the text that was
// in force last. Longer texts than `KEPT_TEXT_MAX` are not kept, because every change writes the whole text.

/** Octets of a text that is kept, as UTF-8. */
export const KEPT_TEXT_MAX = 1 << 20

/** Stores texts over restarts. */
export interface TextKeeper {
  /** By path, as the previous daemon stored them. */
  readonly saved: ReadonlyMap<string, string>
  /** `text` undefined: removes the path, because its file is no longer in force or is too long. */
  readonly keep: (path: string, text: string | undefined) => void
}

/** What is in force of a file: its last good text, its text before that (`held`, because it contradicts others), or nothing. */
export type FileStanding = 'in-force' | 'held' | 'gone'

export class LastGoodTexts {
  readonly #keeper: TextKeeper
  readonly #kept: Map<string, string>
  /** Read without a fault, and not in force yet. */
  readonly #pending = new Map<string, string>()
  readonly #tooLong = new Set<string>()

  constructor(keeper: TextKeeper) {
    this.#keeper = keeper
    this.#kept = new Map(keeper.saved)
  }

  /** By path: for files that are broken at the start, and for an image. */
  get kept(): ReadonlyMap<string, string> {
    return this.#kept
  }

  /** How many files in force are too long to be kept. */
  get tooLong(): number {
    return this.#tooLong.size
  }

  /** A file was read without a fault. */
  note(path: string, text: string): void {
    this.#pending.set(path, text)
  }

  /** Whether the file was read and differs from what was in force last. */
  isNew(path: string): boolean {
    const text = this.#pending.get(path)
    return text !== undefined && text !== this.#kept.get(path)
  }

  /** Keeps the texts that came into force, and removes those of files that are gone. */
  accept(standingOf: (path: string) => FileStanding): void {
    for (const [path, text] of this.#pending) {
      if (standingOf(path) === 'held') continue
      const isLong = text.length > KEPT_TEXT_MAX || Buffer.byteLength(text) > KEPT_TEXT_MAX
      if (isLong) this.#tooLong.add(path)
      else this.#tooLong.delete(path)
      this.#set(path, isLong ? undefined : text)
      this.#pending.delete(path)
    }
    for (const path of this.#kept.keys())
      if (standingOf(path) === 'gone') this.#set(path, undefined)
    for (const path of this.#tooLong) if (standingOf(path) === 'gone') this.#tooLong.delete(path)
  }

  #set(path: string, text: string | undefined): void {
    if (this.#kept.get(path) === text) return
    if (text === undefined) this.#kept.delete(path)
    else this.#kept.set(path, text)
    this.#keeper.keep(path, text)
  }
}
