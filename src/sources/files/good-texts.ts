// Texts of files that are in force, kept so that a daemon that starts over a broken file goes on with what was in force
// last. Long ones are not kept: each is written down whole whenever it changes. Cost: the texts themselves.

/** Octets of a text that is kept, as UTF-8. */
export const KEPT_TEXT_MAX = 1 << 20

/** Where texts are kept over restarts. */
export interface TextKeeper {
  /** By path, as the last daemon kept them. */
  readonly saved: ReadonlyMap<string, string>
  /** `text` undefined: nothing of that path is in force any more, or it is too long. */
  readonly keep: (path: string, text: string | undefined) => void
}

/** What is in force of a file: its last good text, what it was before that, because it contradicts others, or nothing. */
export type Standing = 'in-force' | 'held' | 'gone'

export class GoodTexts {
  readonly #keeper: TextKeeper
  readonly #kept: Map<string, string>
  /** Read without a fault, and not in force yet. */
  readonly #good = new Map<string, string>()
  readonly #tooLong = new Set<string>()

  constructor(keeper: TextKeeper) {
    this.#keeper = keeper
    this.#kept = new Map(keeper.saved)
  }

  /** By path: for files that are broken at the start, and for an image. */
  get kept(): ReadonlyMap<string, string> {
    return this.#kept
  }

  /** Files in force that are not kept for their length. */
  get tooLong(): number {
    return this.#tooLong.size
  }

  /** A file was read and has no fault. */
  read(path: string, text: string): void {
    this.#good.set(path, text)
  }

  /** Whether a file was read that is another than was in force last. */
  isNew(path: string): boolean {
    const text = this.#good.get(path)
    return text !== undefined && text !== this.#kept.get(path)
  }

  /** What was read is in force now, as far as `standingOf` says so, and nothing is of files that are gone. */
  inForce(standingOf: (path: string) => Standing): void {
    for (const [path, text] of this.#good) {
      if (standingOf(path) === 'held') continue
      const isLong = text.length > KEPT_TEXT_MAX || Buffer.byteLength(text) > KEPT_TEXT_MAX
      if (isLong) this.#tooLong.add(path)
      else this.#tooLong.delete(path)
      this.#set(path, isLong ? undefined : text)
      this.#good.delete(path)
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
