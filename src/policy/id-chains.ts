// Many short lists of numbers in one array: each list is a chain of links (id, next link), and the owner
// keeps the number of the first link, 0 for an empty list. Link 0 is not used; freed links are reused.
//
// Cost: 8 octets an id. Adding is constant, removing goes through the one list.

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

  id(link: number): number {
    return this.#links[link * LINK_INTS]!
  }

  next(link: number): number {
    return this.#links[link * LINK_INTS + 1]!
  }

  /** Puts `id` before the list that begins at `first`; returns the new first link. */
  add(first: number, id: number): number {
    let link = this.#free
    if (link !== 0) {
      this.#free = this.next(link)
    } else {
      if (this.#fresh * LINK_INTS === this.#links.length) this.#grow()
      link = this.#fresh++
    }
    this.#links[link * LINK_INTS] = id
    this.#links[link * LINK_INTS + 1] = first
    return link
  }

  /** Takes `id` out once; returns the new first link, or -1 when the list doesn't hold it. */
  remove(first: number, id: number): number {
    let before = 0
    for (let link = first; link !== 0; before = link, link = this.next(link)) {
      if (this.id(link) !== id) continue
      const after = this.next(link)
      this.#links[link * LINK_INTS + 1] = this.#free
      this.#free = link
      if (before === 0) return after
      this.#links[before * LINK_INTS + 1] = after
      return first
    }
    return -1
  }

  #grow(): void {
    const links = new Int32Array(this.#links.length * 2)
    links.set(this.#links)
    this.#links = links
  }
}
