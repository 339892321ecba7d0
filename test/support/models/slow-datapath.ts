// Delays a datapath that applies at once. Each commit is applied and reported some milliseconds after the call, or when the test allows
// it. Until then nothing of the commit is in force.

import assert from 'node:assert/strict'
import type { Clock } from '../../../src/core/clock.ts'
import type { Changes, CommitResult } from '../../../src/datapath/entries.ts'
import type { Datapath } from '../../../src/datapath/datapath.ts'
import { copyChanges } from '../changes.ts'
import { DatapathWrapper } from './datapath-wrapper.ts'

export class SlowDatapath extends DatapathWrapper {
  /** Duration of a commit. With 0, it is applied when the call returns. */
  takesMs = 0
  readonly #clock: Pick<Clock, 'after'>
  #isStalled = false
  #taken: Changes | undefined
  /** Whether the delay of the pending commit is over. */
  #isDue = false
  #listener: (result: CommitResult) => void = () => undefined

  constructor(inner: Datapath, clock: Pick<Clock, 'after'>) {
    super(inner)
    this.#clock = clock
  }

  /** Whether commits end later than they begin. */
  get isSlow(): boolean {
    return this.takesMs > 0 || this.#isStalled
  }

  /** From now on no commit ends. */
  stall(): void {
    this.#isStalled = true
  }

  goOn(): void {
    this.#isStalled = false
    if (this.#isDue) this.#end()
  }

  override onCommitted(listener: (result: CommitResult) => void): void {
    this.#listener = listener
  }

  override commit(changes: Changes): CommitResult | undefined {
    assert.equal(this.#taken, undefined, 'one commit at a time')
    if (!this.isSlow) return this.inner.commit(changes)
    this.#taken = copyChanges(changes)
    this.#clock.after(this.takesMs, () => {
      this.#isDue = true
      if (!this.#isStalled) this.#end()
    })
    return undefined
  }

  #end(): void {
    const taken = this.#taken
    assert.ok(taken !== undefined)
    this.#taken = undefined
    this.#isDue = false
    const result = this.inner.commit(taken)
    assert.ok(result !== undefined, 'the inner datapath applies at once')
    this.#listener(result)
  }
}
