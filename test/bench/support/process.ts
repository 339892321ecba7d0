// What a benchmark measures about its own process: resident memory, and how late the event loop runs.

import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

/** Resident octets after garbage has been collected and freed pages had time to go back. */
export async function residentOctets(): Promise<number> {
  for (let i = 0; i < 3; i++) {
    globalThis.gc?.()
    await sleep(20)
  }
  return process.memoryUsage.rss()
}

/** Milliseconds that this thread could have run and had no CPU, since it began; 0 where the kernel does not tell. */
export function waitedForCpuMs(): number {
  try {
    const [, waited = '0'] = readFileSync('/proc/thread-self/schedstat', 'latin1').split(' ')
    return Number(waited) / 1e6
  } catch {
    return 0
  }
}

/** Milliseconds late, one entry a tick. */
export interface LoopDelays {
  readonly late: readonly number[]
  /** Without what the thread waited for a CPU meanwhile, which others had. */
  readonly own: readonly number[]
}

/** Samples how late a timer of 1 ms fires, garbage collection included; the timer's own ms is not counted. */
export class LoopDelay {
  readonly #late: number[] = []
  readonly #own: number[] = []
  #timer: NodeJS.Timeout | undefined

  start(): void {
    let [expected, waited] = [performance.now() + 1, waitedForCpuMs()]
    this.#timer = setInterval(() => {
      const late = Math.max(0, performance.now() - expected)
      const before = waited
      waited = waitedForCpuMs()
      this.#late.push(late)
      this.#own.push(Math.max(0, late - (waited - before)))
      expected = performance.now() + 1
    }, 1)
  }

  stop(): LoopDelays {
    clearInterval(this.#timer)
    return { late: this.#late, own: this.#own }
  }
}
