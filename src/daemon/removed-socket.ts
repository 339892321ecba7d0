// What the log says of a socket of ours that somebody removed, once a minute at most.

import type { OnRemoved } from '../admin/standing-socket.ts'
import type { Log } from '../telemetry/log.ts'

/** What is not to be done as long as the socket is gone. */
const MISSED = { admin: 'ask', 'take-over': 'take over' } as const

export function tellRemoved(log: Log, which: keyof typeof MISSED, path: string): OnRemoved {
  return (reason) => {
    const until = `nobody can ${MISSED[which]} until it can be made anew`
    const what = reason === undefined ? 'made anew' : until
    log.limited(`${which}-socket`, { path, reason }, `the ${which} socket was removed: ${what}`)
  }
}
