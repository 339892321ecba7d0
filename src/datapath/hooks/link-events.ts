// LinkEvents reports which interfaces appeared, changed or disappeared since the last look, and calls a listener when there are
// such events. If the kernel sends no events, or some events were lost, the caller must look at every interface.

import type { Posix } from '../../native/native.ts'

/** An interface that appeared, changed or disappeared, as it was at the event. */
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

  /**
   * Calls `onEvents` as soon as there are events. The listener must take them. Returns false if the kernel sends no events here.
   * The caller must then look at intervals.
   */
  watch(onEvents: () => void): boolean {
    this.#unwatch()
    if (this.#socket >= 0) this.#watch = this.#posix.linkWatch(this.#socket, onEvents)
    return typeof this.#watch === 'object'
  }

  /** The interfaces with events since the last call. `all` means: look at every interface. */
  take(): readonly LinkItem[] | 'all' {
    const events = this.#socket < 0 ? this.#socket : this.#posix.linkDrain(this.#socket)
    return typeof events === 'number' ? 'all' : itemsOf(events)
  }

  /** All interfaces that exist now. */
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

/** Reads `[index, name, index, name, …]`. */
function itemsOf(flat: readonly (number | string)[]): readonly LinkItem[] {
  const items: LinkItem[] = []
  for (let i = 0; i + 1 < flat.length; i += 2) {
    items.push({ ifindex: Number(flat[i]), name: String(flat[i + 1]) })
  }
  return items
}
