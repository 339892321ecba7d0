// Finds the daemon's socket for a command, and makes the client of the admin API (src/client/) that the command uses. A refusal of the
// daemon becomes an error of the command line.

import { UnavailableError, UsageError } from '../core/errors.ts'
import { Client } from '../client/client.ts'
import { ProblemError } from '../client/problem-error.ts'
import type { SocketPlace } from '../client/transport.ts'
import type { ParsedArguments } from './command.ts'
import { configuredSocket, runningSocket } from './find-daemon.ts'

/** Finds the daemon that this command asks (find-daemon.ts). Throws InvalidInputError if the configuration has faults. */
export async function openClient({ texts: options }: ParsedArguments): Promise<Client> {
  const note = (text: string): void => void process.stderr.write(`namegate: ${text}\n`)
  return clientOf(await runningSocket(options, note))
}

/** The same, but never a daemon that neither options nor configuration name. For commands that end or change enforcement. */
export async function openConfiguredClient({ texts: options }: ParsedArguments): Promise<Client> {
  return clientOf(await configuredSocket(options))
}

/** Returns a client whose errors are UsageError for wrong input of the user, else UnavailableError. */
export function clientOf(place: SocketPlace): Client {
  return new Client({ remedy: 'give --socket or --config', ...place }, (cause) => {
    const isInput = cause.status === 400 || cause.status === 404
    return isInput
      ? new UsageError(cause.message, { cause })
      : new UnavailableError(cause.message, { cause })
  })
}

/** Returns true for an error of `clientOf` that stands for this status. */
export function isStatus(error: unknown, status: number): boolean {
  const cause = error instanceof Error ? error.cause : undefined
  return cause instanceof ProblemError && cause.status === status
}
