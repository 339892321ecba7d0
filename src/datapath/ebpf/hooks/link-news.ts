// News of interfaces from the kernel: what came, changed or went since the last look, and a call when there is
// something to look at. Where it cannot be heard, or some of it was lost, all interfaces are news.

import type { Posix } from '../../../native/native.ts'

/** An interface that came, changed or went, as it was then. */
export interface LinkItem {
  readonly ifindex: number
  readonly name: string
}

export class LinkNews {
  readonly #posix: Posix
  readonly #socket: number
  #watch: object | number = -1

  constructor(posix: Posix) {
    this.#posix = posix
    this.#socket = posix.linkSocket()
  }

  /** Calls `onNews` as soon as there is some; it must take it. False: here one has to look now and then. */
  watch(onNews: () => void): boolean {
    this.#unwatch()
    if (this.#socket >= 0) this.#watch = this.#posix.linkWatch(this.#socket, onNews)
    return typeof this.#watch === 'object'
  }

  /** What happened since the last call; `all`: look at everything. */
  take(): readonly LinkItem[] | 'all' {
    const news = this.#socket < 0 ? this.#socket : this.#posix.linkDrain(this.#socket)
    return typeof news === 'number' ? 'all' : itemsOf(news)
  }

  /** The interfaces that there are. */
  list(): readonly LinkItem[] {
    const found = this.#posix.ifList()
    return typeof found === 'number' ? [] : itemsOf(found)
  }

  close(): void {
    this.#unwatch()
    if (this.#socket >= 0) this.#posix.closeFd(this.#socket)
  }

  #unwatch(): void {
    if (typeof this.#watch === 'object') this.#posix.linkUnwatch(this.#watch)
    this.#watch = -1
  }
}

/** From `[index, name, index, name, …]`. */
function itemsOf(flat: readonly (number | string)[]): readonly LinkItem[] {
  const items: LinkItem[] = []
  for (let i = 0; i + 1 < flat.length; i += 2) {
    items.push({ ifindex: Number(flat[i]), name: String(flat[i + 1]) })
  }
  return items
}
