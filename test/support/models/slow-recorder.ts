// A recorder whose commits end when the test calls `end`. Until then nothing of them is in force.

import assert from 'node:assert/strict'
import type { Changes, CommitResult } from '../../../src/datapath/entries.ts'
import { copyChanges } from '../changes.ts'
import { Recorder } from './recorder.ts'

export class SlowRecorder extends Recorder {
  /** False: commits are applied at once, as in `Recorder`. */
  slow = true
  #taken: Changes | undefined
  #listener: (result: CommitResult) => void = () => undefined

  override commit(changes: Changes): CommitResult | undefined {
    assert.equal(this.#taken, undefined, 'one commit at a time')
    if (!this.slow) return this.apply(changes)
    this.#taken = copyChanges(changes)
    return undefined
  }

  override onCommitted(listener: (result: CommitResult) => void): void {
    this.#listener = listener
  }

  get isBusy(): boolean {
    return this.#taken !== undefined
  }

  /** Applies and reports the pending commit, if there is one. */
  end(): void {
    const changes = this.#taken
    if (changes === undefined) return
    this.#taken = undefined
    this.#listener(this.apply(changes))
  }

  /** Ends commits until none is under way. */
  drain(): void {
    while (this.isBusy) this.end()
  }
}
