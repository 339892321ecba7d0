// Many short lists of numbers, most of one number, without an object each. The owner keeps a list as one
// int: 0 is the empty list, n > 0 the list of n - 1 alone, n < 0 the chain of links that begins at link -n.
// A link is (number, next link), 0 ending the chain; freed links are reused.
//
// Cost: nothing for lists of one, else 8 octets a number. Adding is constant, removing goes through the list.

const LINK_INTS = 2
const FIRST_LINKS = 16

export class IdChains {
  #links = new Int32Array(FIRST_LINKS * LINK_INTS)
  #fresh = 1
  #free = 0

  /** Octets held. */
  get octets(): number {
    return this.#links.byteLength
  }

  /** The number at a link of a chain. */
  id(link: number): number {
    return this.#links[link * LINK_INTS]!
  }

  /** The link behind, or 0. */
  next(link: number): number {
    return this.#links[link * LINK_INTS + 1]!
  }

  /** The list with `id` (0..2^31-2) in it once more. */
  add(list: number, id: number): number {
    if (list === 0) return id + 1
    const rest = list > 0 ? this.#link(list - 1, 0) : -list
    return -this.#link(id, rest)
  }

  holds(list: number, id: number): boolean {
    if (list >= 0) return list === id + 1
    for (let link = -list; link !== 0; link = this.next(link)) if (this.id(link) === id) return true
    return false
  }

  /** The list with `id`, which it holds, taken out once. */
  remove(list: number, id: number): number {
    if (list > 0) return 0
    const first = -list
    let before = 0
    let link = first
    while (this.id(link) !== id) {
      before = link
      link = this.next(link)
    }
    const after = this.next(link)
    this.#release(link)
    if (before !== 0) this.#links[before * LINK_INTS + 1] = after
    const rest = before === 0 ? after : first
    if (this.next(rest) !== 0) return -rest
    const last = this.id(rest)
    this.#release(rest)
    return last + 1
  }

  #link(id: number, next: number): number {
    let link = this.#free
    if (link !== 0) {
      this.#free = this.next(link)
    } else {
      if (this.#fresh * LINK_INTS === this.#links.length) this.#grow()
      link = this.#fresh++
    }
    this.#links[link * LINK_INTS] = id
    this.#links[link * LINK_INTS + 1] = next
    return link
  }

  #release(link: number): void {
    this.#links[link * LINK_INTS + 1] = this.#free
    this.#free = link
  }

  #grow(): void {
    const links = new Int32Array(this.#links.length * 2)
    links.set(this.#links)
    this.#links = links
  }
}
