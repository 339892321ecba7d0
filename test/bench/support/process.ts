// A benchmark's figures about its own process: resident memory, and the delay of the event loop.

import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

/** Resident octets after garbage collection, and after a time for the return of freed pages. */
export async function residentOctets(): Promise<number> {
  for (let i = 0; i < 3; i++) {
    globalThis.gc?.()
    await sleep(20)
  }
  return process.memoryUsage.rss()
}

/** Milliseconds in which this thread was ready to run without a CPU, since its start; 0 if the kernel does not count them. */
export function waitedForCpuMs(): number {
  try {
    const [, waited = '0'] = readFileSync('/proc/thread-self/schedstat', 'latin1').split(' ')
    return Number(waited) / 1e6
  } catch {
    return 0
  }
}

/** Delays in milliseconds, one entry per tick. */
export interface LoopDelays {
  readonly late: readonly number[]
  /** Without the time in which the thread waited for a CPU that others used. */
  readonly own: readonly number[]
}

/** Samples the delay of a timer of 1 ms, including garbage collection. The timer's own ms does not count. */
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
