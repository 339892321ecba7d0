// Numbers for the owners of facts that configuration makes (policies, endpoints, resources, the node). The
// number stands in the fact, the text is for people and for deciding conflicts. Counted; freed numbers are
// used again.

export class OwnerNames {
  readonly #numbers = new Map<string, number>()
  readonly #texts: (string | undefined)[] = [undefined]
  readonly #uses: number[] = [0]
  readonly #free: number[] = []

  /** A counted reference to the number of an owner's text. */
  hold(text: string): number {
    const known = this.#numbers.get(text)
    if (known !== undefined) {
      this.#uses[known]!++
      return known
    }
    const number = this.#free.pop() ?? this.#texts.length
    this.#texts[number] = text
    this.#uses[number] = 1
    this.#numbers.set(text, number)
    return number
  }

  release(number: number): void {
    this.#uses[number]!--
    if (this.#uses[number] !== 0) return
    const text = this.#texts[number]
    if (text !== undefined) this.#numbers.delete(text)
    this.#texts[number] = undefined
    this.#free.push(number)
  }

  text(number: number): string {
    return this.#texts[number] ?? ''
  }
}
