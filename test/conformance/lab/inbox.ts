// Received items, in order, and waits for later ones. A wait that takes too long fails with a text that names its purpose.

const WAIT_MS = 20_000

export class Inbox<Item> {
  readonly items: Item[] = []
  readonly #what: string
  readonly #waiters = new Set<() => void>()

  constructor(what: string) {
    this.#what = what
  }

  push(item: Item): void {
    this.items.push(item)
    for (const waiter of this.#waiters) waiter()
  }

  /** Item `index`, from 0. Waits until it has arrived. */
  async at(index: number, ms = WAIT_MS): Promise<Item> {
    await this.until((items) => items.length > index, `number ${index + 1}`, ms)
    const item = this.items[index]
    if (item === undefined) throw new Error(`no ${this.#what} ${index}`)
    return item
  }

  /** Waits until the received items are as wanted. */
  async until(
    isThere: (items: readonly Item[]) => boolean,
    what: string,
    ms = WAIT_MS,
  ): Promise<void> {
    if (isThere(this.items)) return
    await new Promise<void>((resolve, reject) => {
      const done = (): void => {
        clearTimeout(timer)
        this.#waiters.delete(check)
      }
      const check = (): void => {
        if (!isThere(this.items)) return
        done()
        resolve()
      }
      const timer = setTimeout(() => {
        done()
        const came = `${this.items.length} came`
        reject(new Error(`waited ${ms} ms in vain for ${this.#what}: ${what}, ${came}`))
      }, ms)
      this.#waiters.add(check)
    })
  }
}
