// `repeat` runs work at once and then again and again, until the user ends the command.

import { stayAlive, systemClock } from '../core/clock.ts'
import type { Terminal } from './command.ts'

/** Waits `intervalMs` between two runs. Rejects when `run` rejects. Without a terminal, only a signal or a rejection ends it. */
export async function repeat(
  terminal: Terminal | undefined,
  intervalMs: number,
  run: () => Promise<void>,
): Promise<void> {
  let isOver = false
  let wake = (): void => undefined
  terminal?.onInterrupt(() => {
    isOver = true
    wake()
  })
  const alive = stayAlive()
  try {
    for (;;) {
      await run()
      if (isOver) return
      await new Promise<void>((resolve) => {
        const timer = systemClock.after(intervalMs, resolve)
        wake = () => {
          timer.cancel()
          resolve()
        }
      })
      if (isOver) return
    }
  } finally {
    alive.cancel()
  }
}
