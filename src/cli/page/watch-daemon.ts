// `watchDaemon` says when the daemon at a socket ends, and when it is back. It tries the socket again and again, and keeps no connection.

import { systemClock, type Timer } from '../../core/clock.ts'
import { isListening } from '../find-daemon.ts'

const EVERY_MS = 1000
/** After so many failed tries the daemon has ended. One failure can be a socket that a successor binds at this moment. */
const TRIES = 2

/** Begins to watch a daemon that runs. Returns the function that ends the watch. */
export function watchDaemon(
  socket: string,
  say: (text: string) => void,
  everyMs = EVERY_MS,
): () => void {
  let failures = 0
  let isOver = false
  let timer: Timer | undefined
  const look = async (): Promise<void> => {
    const isThere = await isListening(socket)
    if (isOver) return
    if (isThere && failures >= TRIES) say('the daemon is back')
    failures = isThere ? 0 : failures + 1
    if (failures === TRIES) say('the daemon ended; waiting for it')
    wait()
  }
  const wait = (): void => {
    timer = systemClock.after(everyMs, () => void look())
  }
  wait()
  return () => {
    isOver = true
    timer?.cancel()
  }
}
