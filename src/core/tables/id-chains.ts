// IdChains keeps many short lists of numbers without one object per list. Most lists have one number. The owner keeps each list as one
// int:
//   0      the empty list
//   n > 0  a list with the one number n - 1
//   n < 0  a chain that begins at link -n
//
// A link is (number, next link), and the last link has 0 as its next. Freed links are reused.
//
// Cost: a list of one number needs no links, other lists need 8 octets per number. `add` takes constant time, `remove` reads the list.

const LINK_INTS = 2
const FIRST_LINKS = 16

export class IdChains {
  #links = new Int32Array(FIRST_LINKS * LINK_INTS)
  #fresh = 1
  #free = 0

  /** Octets of the links. */
  get octets(): number {
    return this.#links.byteLength
  }

  /** Returns the number of a link. */
  id(link: number): number {
    return this.#links[link * LINK_INTS]!
  }

  /** Returns the link after a link, 0 for the last one. */
  next(link: number): number {
    return this.#links[link * LINK_INTS + 1]!
  }

  /** Returns the list after adding `id` (0..2^31-2), even if `id` is already there. */
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

  /** Returns the list after removing `id` once. The list must contain `id`. */
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
