// RelistGate lets the collections of one node list again one after another, in the order in which they came. So only one list at a time
// needs memory, and a node never asks for everything at once.

export class RelistGate {
  readonly #waiting: (() => void)[] = []
  #isTaken = false

  /** Calls `run` when the turn comes, which can be at once. The returned function gives the turn back, or leaves the queue. */
  enter(run: () => void): () => void {
    let isOver = false
    const begin = (): void => {
      this.#isTaken = true
      run()
    }
    if (this.#isTaken) this.#waiting.push(begin)
    const leave = (): void => {
      if (isOver) return
      isOver = true
      const place = this.#waiting.indexOf(begin)
      if (place >= 0) this.#waiting.splice(place, 1)
      else this.#next()
    }
    if (!this.#isTaken) begin()
    return leave
  }

  #next(): void {
    this.#isTaken = false
    this.#waiting.shift()?.()
  }
}
