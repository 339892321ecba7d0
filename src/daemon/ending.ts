// How a daemon process comes to its end: who asked for it first decides how, and whoever asks again is in a hurry.

/** `stop`: answers what is in flight first. `detached`: nothing is enforced any more. `handed-over`: another process goes on. */
export type End = 'stop' | 'detached' | 'handed-over'

export class Ending {
  /** Resolves when the end is asked for. */
  readonly asked: Promise<End>
  /** Resolves when it is asked for once more. */
  readonly hurried: Promise<void>
  #ask: (end: End) => void = () => undefined
  #hurry: () => void = () => undefined
  #isAsked = false

  constructor() {
    this.asked = new Promise((done) => (this.#ask = done))
    this.hurried = new Promise((done) => (this.#hurry = done))
  }

  /** Whether that is the first time. */
  end(how: End): boolean {
    const isFirst = !this.#isAsked
    this.#isAsked = true
    if (isFirst) this.#ask(how)
    else this.#hurry()
    return isFirst
  }
}
