// The error that a request got no answer, with the kind of failure for programs.

import { UnavailableError } from '../core/errors.ts'

/**
 * `absent`: no daemon listens at the socket. `denied`: this user may not connect. `silent`: a daemon listens and does not answer. `broken`:
 * the connection failed or ended in another way.
 */
export type ConnectionFailure = 'absent' | 'denied' | 'silent' | 'broken'

/** No daemon answered a request. The message names the remedy. */
export class ConnectionError extends UnavailableError {
  readonly failure: ConnectionFailure

  constructor(failure: ConnectionFailure, message: string) {
    super(message)
    this.failure = failure
  }
}
