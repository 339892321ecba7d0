// Whether any server answers: each is asked once at the start, and again every second while none has. Real
// answers count as well.

import type { Clock } from '../core/clock.ts'
import { probeServer } from './probe.ts'
import type { RandomSource } from './random.ts'
import type { ServerAddress } from './server-pool.ts'

export interface ReadinessOptions {
  readonly clock: Clock
  readonly random: RandomSource
  readonly servers: readonly ServerAddress[]
  readonly timeoutMs: number
  /** Answers to real queries so far. */
  readonly answers: () => number
  readonly onSilent: (server: ServerAddress) => void
}

const AGAIN_MS = 1000

export class Readiness {
  readonly #options: ReadinessOptions
  #answered: readonly boolean[] = []
  #stopped = false

  constructor(options: ReadinessOptions) {
    this.#options = options
  }

  /** By server: whether it answered when it was asked last; empty before. */
  get answered(): readonly boolean[] {
    return this.#answered
  }

  get anyAnswered(): boolean {
    return this.#answered.includes(true) || this.#options.answers() > 0
  }

  async probe(): Promise<void> {
    const { servers, onSilent, clock } = this.#options
    this.#answered = await Promise.all(servers.map((server) => probeServer(server, this.#options)))
    servers.forEach((server, i) => {
      if (this.#answered[i] !== true && !this.#stopped) onSilent(server)
    })
    if (!this.anyAnswered && !this.#stopped) clock.after(AGAIN_MS, () => void this.probe())
  }

  stop(): void {
    this.#stopped = true
  }
}
