// Finds the socket of the daemon that a command asks, from any folder. `--socket`, `--config` and their variables name one daemon, which is
// then the only one tried; if none listens at the socket of `--socket`, the error lists those that run. Otherwise a configuration that is
// found by its place names the socket. If no daemon listens there, and exactly one other daemon runs on this host, the command asks that one.

import { existsSync, realpathSync } from 'node:fs'
import { connect } from 'node:net'
import { dirname, join, resolve } from 'node:path'
import { UnavailableError } from '../core/errors.ts'
import { notedSockets } from '../daemon/noted-sockets.ts'
import { DEFAULT_SOCKET } from '../client/default-socket.ts'
import type { SocketPlace } from '../client/transport.ts'
import { findConfigFile, givenSocket, namedConfigFile } from './config-file.ts'
import { packageRoot } from '../native/native-files.ts'
import { noteIn } from './up/added-lines.ts'

/** Returns the socket that options, environment or configuration name. Throws InvalidInputError if the configuration has faults. */
export async function configuredSocket(options: ReadonlyMap<string, string>): Promise<SocketPlace> {
  const given = givenSocket(options.get('socket'))
  if (given !== undefined) return given
  const file = findConfigFile(options.get('config'))
  if (file === undefined) return { path: DEFAULT_SOCKET, named: 'where no configuration is found' }
  const { loadConfig } = await import('../config/load.ts')
  return { path: loadConfig(file).admin.socket, named: `of ${file}` }
}

/**
 * Returns configuredSocket, or the socket of the only daemon that runs if nothing was named and no daemon listens there. `note` receives a
 * line of text then. Throws UnavailableError if several daemons run and none of them is configured.
 */
export async function runningSocket(
  options: ReadonlyMap<string, string>,
  note: (text: string) => void,
): Promise<SocketPlace> {
  return await runningBeside(await configuredSocket(options), options, note)
}

/** The same for commands that read the configuration themselves. `place` is the socket that the options or the configuration name. */
export async function runningBeside(
  place: SocketPlace,
  options: ReadonlyMap<string, string>,
  note: (text: string) => void,
): Promise<SocketPlace> {
  const isGiven = givenSocket(options.get('socket')) !== undefined
  if ((isNamed(options) && !isGiven) || (await isListening(place.path))) return place
  const [only, ...others] = await runningSockets(resolve(place.path))
  if (isGiven) return { ...place, remedy: remedyOf(only === undefined ? [] : [only, ...others]) }
  if (only === undefined) return place
  if (others.length > 0) {
    const all = [only, ...others].map(optionFor)
    throw new UnavailableError(
      `${all.length} daemons run, and none at ${place.path} (the socket ${place.named}): choose one with ${all.join(', ')}`,
    )
  }
  const file = findConfigFile(options.get('config'))
  if (file !== undefined && !isSample(file)) {
    note(`asking the daemon at ${shown(only)}, the only one that runs; none runs with ${file}`)
  }
  return { path: only, named: 'of the only daemon that runs' }
}

/** True for the sample in a clone of this program. A command in a clone is seldom about its daemon. */
function isSample(file: string): boolean {
  const sample = join(packageRoot(), 'config/namegate.yaml')
  return existsSync(sample) && realpathSync(sample) === realpathSync(file)
}

/** True if options or the environment name one daemon. */
export function isNamed(options: ReadonlyMap<string, string>): boolean {
  const socket = givenSocket(options.get('socket'))
  return socket !== undefined || namedConfigFile(options.get('config')) !== undefined
}

/** What helps if no daemon listens at the socket of --socket. */
function remedyOf(running: readonly string[]): string {
  if (running.length === 0) return 'give another --socket'
  return `choose a running one with ${running.map(optionFor).join(', ')}`
}

/** Returns the option that names a daemon. */
function optionFor(path: string): string {
  return `--socket ${shown(path)}`
}

/** Returns the socket, with the workload of a daemon of `namegate up`. */
function shown(path: string): string {
  const workload = noteIn(dirname(path))?.workload
  return workload === undefined ? path : `${path} (protects ${workload})`
}

/** Returns the sockets of the daemons that run on this host, except `besides`. */
async function runningSockets(besides: string): Promise<readonly string[]> {
  const noted = notedSockets().filter((path) => path !== besides)
  const listening = await Promise.all(noted.map(async (path) => await isListening(path)))
  return noted.filter((_, i) => listening[i] === true)
}

/** Returns true if a process accepts connections at the socket, or if this user may not connect. */
export async function isListening(path: string): Promise<boolean> {
  return await new Promise((done) => {
    const socket = connect(path)
    socket.once('connect', () => {
      socket.destroy()
      done(true)
    })
    socket.once('error', (error: NodeJS.ErrnoException) => done(DENIED.has(error.code ?? '')))
  })
}

const DENIED: ReadonlySet<string> = new Set(['EACCES', 'EPERM'])
