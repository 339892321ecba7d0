// Events of interfaces from the kernel: which interfaces came, changed or went since the last look, and a call when there is something to
// look at. Where the kernel sends no events, or some were lost, every interface has to be looked at.

import type { Posix } from '../../native/native.ts'

/** An interface that came, changed or went, as it was then. */
export interface LinkItem {
  readonly ifindex: number
  readonly name: string
}

export class LinkEvents {
  readonly #posix: Posix
  readonly #socket: number
  #watch: object | number = -1

  constructor(posix: Posix) {
    this.#posix = posix
    this.#socket = posix.linkSocket()
  }

  /** Calls `onEvents` as soon as there are some; the listener must take them. False: the kernel sends none here, so look now and then. */
  watch(onEvents: () => void): boolean {
    this.#unwatch()
    if (this.#socket >= 0) this.#watch = this.#posix.linkWatch(this.#socket, onEvents)
    return typeof this.#watch === 'object'
  }

  /** Interfaces with events since the last call; `all`: look at every interface. */
  take(): readonly LinkItem[] | 'all' {
    const events = this.#socket < 0 ? this.#socket : this.#posix.linkDrain(this.#socket)
    return typeof events === 'number' ? 'all' : itemsOf(events)
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
