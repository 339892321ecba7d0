// Keeps the texts of the files in force over restarts. A daemon that starts with a broken file continues with the text that was in force
// last. Texts longer than `KEPT_TEXT_MAX` are not kept, because every change writes the whole text.

/** The longest text that is kept, in octets of UTF-8. */
export const KEPT_TEXT_MAX = 1 << 20

/** Stores texts over restarts. */
export interface TextKeeper {
  /** The texts by path, as the previous daemon stored them. */
  readonly saved: ReadonlyMap<string, string>
  /** Stores a text. `text` undefined removes the path, because its file is no longer in force or its text is too long. */
  readonly keep: (path: string, text: string | undefined) => void
}

/**
 * Which text of a file is in force. `in-force`: its last good text. `held`: an earlier text, because the last text contradicts other files.
 * `gone`: none.
 */
export type FileStanding = 'in-force' | 'held' | 'gone'

export class LastGoodTexts {
  readonly #keeper: TextKeeper
  readonly #kept: Map<string, string>
  /** Texts that were read without a fault and are not in force yet. */
  readonly #pending = new Map<string, string>()
  readonly #tooLong = new Set<string>()

  constructor(keeper: TextKeeper) {
    this.#keeper = keeper
    this.#kept = new Map(keeper.saved)
  }

  /** The kept texts by path: for files that are broken at the start, and for an image of the state. */
  get kept(): ReadonlyMap<string, string> {
    return this.#kept
  }

  /** How many files in force are too long to be kept. */
  get tooLong(): number {
    return this.#tooLong.size
  }

  /** Notes that a file was read without a fault. */
  note(path: string, text: string): void {
    this.#pending.set(path, text)
  }

  /** True if the file was read and its text differs from the text that was in force last. */
  isNew(path: string): boolean {
    const text = this.#pending.get(path)
    return text !== undefined && text !== this.#kept.get(path)
  }

  /** Keeps the texts that are in force now, and removes the texts of removed files. */
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
