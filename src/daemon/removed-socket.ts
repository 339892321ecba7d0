// What becomes of a socket of ours that somebody removed: it is made anew and counted, or the log says why not, once a minute at
// most.

import type { OnRemoved } from '../admin/standing-socket.ts'
import type { Log } from '../telemetry/log.ts'
import type { PutBack } from '../telemetry/put-back.ts'

/** What is not to be done as long as the socket is gone. */
const MISSED = { admin: 'ask', 'take-over': 'take over' } as const

export function tellRemoved(
  log: Log,
  putBack: PutBack,
  which: keyof typeof MISSED,
  path: string,
): OnRemoved {
  return (reason) => {
    if (reason === undefined) {
      putBack.add(`${which}-socket`, path)
      return
    }
    const until = `nobody can ${MISSED[which]} until it can be made anew`
    log.limited(`${which}-socket`, { path, reason }, `the ${which} socket was removed: ${until}`)
  }
}
