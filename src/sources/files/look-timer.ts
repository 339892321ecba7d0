// When files are looked at: often while somebody is at work on them, seldom while nobody is, at once when a change is
// heard. Looking costs a few system calls for every file, which is most of what an idle daemon does.

import type { Clock, Timer } from '../../core/clock.ts'
import { FolderNews } from './folder-news.ts'

/** While somebody may be at work on a file, */
const AT_WORK_MS = 100
/** when nothing has changed for so long, */
const PATIENCE_MS = 10_000
const QUIET_MS = 400
/** and where every change would be heard: for what nobody has thought of. */
const HEARD_MS = 5000

/** How long a look at very many files takes in one go. */
const SLICE_MS = 2

/** What a look has shown; `done`: there is nothing to look at any more; `unfinished`: it is to be gone on with. */
export type Looked = 'changing' | 'quiet' | 'done' | 'unfinished'

/** A look, or as much of it as there is time for. */
type Look = (until: number) => Looked

export class LookTimer {
  readonly #clock: Clock
  readonly #look: Look
  #news: FolderNews | undefined
  #timer: Timer | undefined
  #paths: () => Iterable<string> = () => []
  #changedAt = 0
  /** Something changed since then. */
  #hasNews = true
  #isSlow = false

  constructor(options: { readonly clock: Clock; readonly look: Look }) {
    this.#clock = options.clock
    this.#look = options.look
  }

  get isRunning(): boolean {
    return this.#timer !== undefined
  }

  /** `paths`: files and folders whose changes are listened for, as they are by then. */
  start(paths: () => Iterable<string>): void {
    this.stop()
    this.#hasNews = true
    this.#paths = paths
    this.#listen()
    this.#again()
  }

  stop(): void {
    this.#timer?.cancel()
    this.#timer = undefined
    this.#news?.close()
  }

  #again(): void {
    const now = this.#clock.now()
    if (this.#hasNews) this.#changedAt = now
    this.#hasNews = false
    const isSlow = now - this.#changedAt >= PATIENCE_MS
    // What came meanwhile is to be heard, too.
    if (isSlow && !this.#isSlow) this.#listen()
    this.#isSlow = isSlow
    const slow = this.#news?.isHearing === true ? HEARD_MS : QUIET_MS
    this.#lookIn(this.#isSlow ? slow : AT_WORK_MS)
  }

  #lookIn(ms: number): void {
    this.#timer = this.#clock.after(ms, () => {
      const looked = this.#look(this.#clock.now() + SLICE_MS)
      if (looked === 'changing') this.#hasNews = true
      if (this.#timer === undefined) return
      if (looked === 'unfinished') this.#lookIn(0)
      else if (looked === 'done') this.stop()
      else this.#again()
    })
  }

  #listen(): void {
    this.#news?.close()
    this.#news = new FolderNews(this.#paths(), () => this.#hear())
  }

  /** Somebody is at work on a file. */
  #hear(): void {
    this.#hasNews = true
    if (!this.#isSlow || this.#timer === undefined) return
    this.#timer.cancel()
    this.#again()
  }
}
