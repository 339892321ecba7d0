// `runDatapath` runs `namegate datapath verify|detach|close|mode`. `mode` and `detach` are for emergencies, so they work with and without a
// daemon. `mode` changes the kernel's maps or table, and then notifies the daemon. `detach` first tells the daemon to detach, and then
// removes what is left in the kernel.

import { setPinnedMode } from '../../datapath/ebpf/break-glass.ts'
import type { Mode } from '../../datapath/entries.ts'
import { stayAlive, systemClock } from '../../core/clock.ts'
import { InvalidInputError, UnavailableError } from '../../core/errors.ts'
import { loadBpf, loadNetlink } from '../../native/native.ts'
import type { Mode as ModeRequest, Verify } from '../../client/api-types.ts'
import type { Client } from '../../client/client.ts'
import { SilentDaemonError } from '../../client/silence.ts'
import { openClient, openConfiguredClient } from '../client.ts'
import {
  EXIT_NEGATIVE,
  EXIT_OK,
  toJson,
  type CommandOutput,
  type ParsedArguments,
} from '../command.ts'
import { CONFIG_FILES, findConfigFile, readConfig } from '../config-file.ts'
import { fieldsOf, listOf, textOf, type PartOf } from '../fields.ts'
import { notedPinPath } from '../../daemon/noted-pins.ts'
import { readDatapathKind, readPinPath } from '../pin-path.ts'
import { formatTable } from '../table.ts'

const MODES: readonly Mode[] = ['enforce', 'audit', 'bypass']
/** How long a command waits for the daemon, in milliseconds. A stopped or stuck daemon must not delay an emergency. */
const NOTIFY_MS = 1000
const NO_DAEMON = 'no daemon answers'

export async function runDatapath(read: ParsedArguments, output: CommandOutput): Promise<number> {
  const [verb, value, ...rest] = read.positionals
  const mode = MODES.find((each) => each === value)
  if (verb === 'verify' && value === undefined) return await verify(read, output)
  if (verb === 'detach' && value === undefined) return await detach(read, output)
  if (verb === 'close' && value === undefined) return await close(read, output)
  if (verb === 'mode' && mode !== undefined && rest.length === 0) {
    return await setMode(mode, read, output)
  }
  const reason =
    verb === 'mode'
      ? 'datapath mode needs enforce, audit or bypass'
      : 'datapath needs verify, detach, close or mode'
  return read.wrong(reason)
}

async function verify(read: ParsedArguments, output: CommandOutput): Promise<number> {
  const client = await openClient(read)
  const answer: PartOf<Verify> = (await client.request('GET /v1/verify')).value
  const differences: readonly PartOf<Difference>[] = listOf(answer.differences).map(fieldsOf)
  if (read.texts.has('output')) {
    output.stdout(toJson(answer))
  } else if (differences.length === 0) {
    output.stdout('no differences\n')
  } else {
    const rows = differences.map(({ map, key, want, have }) => [map, key, want, have].map(textOf))
    output.stdout(formatTable(['MAP', 'KEY', 'WANT', 'HAVE'], rows))
  }
  return differences.length === 0 ? EXIT_OK : EXIT_NEGATIVE
}

type Difference = Verify['differences'][number]

/** Sets the mode in the kernel with as little code as possible, and then notifies the daemon. */
async function setMode(mode: Mode, read: ParsedArguments, output: CommandOutput): Promise<number> {
  const file = findConfigFile(read.texts.get('config'))
  const pinned = file !== undefined && (await setModeBeside(file, mode))
  // With `pinned`, the daemon reads the mode from the pins, because a stopped daemon may read the request late. It must not undo a newer
  // mode then.
  const notified = await notifyMode(read, { mode: pinned ? 'pinned' : mode }, pinned)
  const isNotified = notified === 'notified'
  if (read.texts.has('output')) output.stdout(toJson({ mode, pins: pinned, daemon: isNotified }))
  else
    output.stdout(
      `mode is ${mode}${isNotified ? '' : `; ${notified}, but the mode is in force in the kernel`}\n`,
    )
  return EXIT_OK
}

/** Sets the mode in the pinned maps or the table. Returns false if the config has neither, so that only a daemon can set the mode. */
async function setModeBeside(file: string, mode: Mode): Promise<boolean> {
  // The file can name another kind of datapath than before. Pins from before still enforce, and no daemon starts while they exist.
  const pinPath = readPinPath(file) ?? notedPinPath(file)
  if (pinPath !== undefined) {
    setPinnedMode(loadBpf(), pinPath, mode)
    return true
  }
  if (readDatapathKind(file) !== 'nftables') return false
  const { setTableMode } = await import('../../datapath/nftables/break-glass.ts')
  setTableMode(loadNetlink(), mode)
  return true
}

/**
 * Notifies the daemon of a mode. If the kernel already has the mode (`pinned`), a missing daemon or a faulty config, which names no
 * socket, is not an error. Otherwise throws UnavailableError.
 */
async function notifyMode(
  read: ParsedArguments,
  body: ModeRequest,
  pinned: boolean,
): Promise<Notified> {
  try {
    const client = await openConfiguredClient(read)
    const options = { body, timeoutMs: NOTIFY_MS }
    return await notify(() => client.request('POST /v1/mode', options), pinned)
  } catch (error) {
    if (pinned && error instanceof InvalidInputError) return NO_DAEMON
    const isAbsent = error instanceof UnavailableError && !(error instanceof SilentDaemonError)
    if (pinned || !isAbsent) throw error
    const file = findConfigFile(read.texts.get('config'))
    const where =
      file === undefined
        ? `none of ${CONFIG_FILES.join(' and ')} exists`
        : `${file} has no datapath.kind ebpf`
    throw new UnavailableError(
      `Cannot set the mode: ${where}, so its pins are not known, and no daemon answers: give the --config of the daemon`,
    )
  }
}

async function detach(read: ParsedArguments, output: CommandOutput): Promise<number> {
  const { enforcing, takeAway } = await import('../../daemon/stale-datapaths.ts')
  const config = await readConfig(read.texts.get('config'))
  const client = await openConfiguredClient(read)
  const { datapath } = config
  // `detach` reaches the daemon first. The daemon holds locks until it ends, even if its datapath is not of the kind in the file.
  const there = enforcing(config)
  const isKernels = there.length > 0 || datapath.kind !== 'memory'
  const isNotified = (await notify(() => toldToDetach(client), isKernels)) === 'notified'
  // A daemon that answered has removed its own entries. A daemon that hangs has not removed them.
  const taken = there.map(takeAway)
  const { forgetPins } = await import('../../daemon/noted-pins.ts')
  forgetPins(config.file)
  const intercepted = await isIntercepted(isNotified && config.intercept.onExit === 'open')
  if (read.texts.has('output')) {
    output.stdout(toJson({ detached: true, taken, daemon: isNotified, intercepted }))
    return EXIT_OK
  }
  const what = taken.length === 0 ? 'found nothing of namegate' : taken.join(', ')
  output.stdout(`detached: ${what}${isNotified ? ', and the daemon ends' : ''}\n`)
  if (intercepted) output.stdout(INTERCEPTED)
  return EXIT_OK
}

const INTERCEPTED =
  "DNS is still intercepted and waits for a daemon: 'namegate intercept down' gives it back to the servers that workloads ask\n"
/** A daemon that removes its rules of interception when it ends needs at most this time. */
const ENDS_MS = 3000
const LOOK_MS = 50

/** Returns true if rules of interception are in force in this namespace. `isEnding`: first gives an ending daemon 3 s to remove them. */
async function isIntercepted(isEnding: boolean): Promise<boolean> {
  const { makeRules, pinnedFlags } = await import('../../daemon/open-interception.ts')
  const rules = makeRules(pinnedFlags(undefined))
  const awake = stayAlive()
  const late = systemClock.now() + (isEnding ? ENDS_MS : 0)
  try {
    for (;;) {
      if ((await rules.inForce()) === undefined) return false
      if (systemClock.now() >= late) return true
      await new Promise<void>((done) => systemClock.after(LOOK_MS, done))
    }
  } catch (error) {
    if (error instanceof UnavailableError) return false
    throw error
  } finally {
    awake.cancel()
  }
}

async function close(read: ParsedArguments, output: CommandOutput): Promise<number> {
  const { closeEndpoints } = await import('../datapath/close-endpoints.ts')
  const result = await closeEndpoints(await readConfig(read.texts.get('config')))
  const { closed, waiting, kept, faults } = result
  for (const fault of faults) output.stderr(`${fault}\n`)
  if (faults.length > 0)
    output.stderr('closed the endpoints that the last daemon recorded instead\n')
  if (read.texts.has('output')) output.stdout(toJson({ closed, waiting, kept }))
  else {
    output.stdout(`closed: ${closed.length === 0 ? 'nothing' : closed.join(', ')}\n`)
    if (waiting.length > 0)
      output.stdout(`interface missing, closed when it appears: ${waiting.join(', ')}\n`)
    if (kept.length > 0) output.stdout(`already closed or enforced: ${kept.join(', ')}\n`)
  }
  return EXIT_OK
}

/** `notified`, or in words why the daemon did not accept the request. */
type Notified = 'notified' | typeof NO_DAEMON | `the ${string} does not answer`

async function toldToDetach(client: Client): Promise<void> {
  await client.request('POST /v1/detach', { timeoutMs: NOTIFY_MS })
}

/** Sends a request to the daemon. `mayBeAbsent`: a missing or silent daemon is not an error. Otherwise throws UnavailableError for it. */
async function notify(send: () => Promise<unknown>, mayBeAbsent: boolean): Promise<Notified> {
  try {
    await send()
    return 'notified'
  } catch (error) {
    if (!mayBeAbsent || !(error instanceof UnavailableError)) throw error
    return error instanceof SilentDaemonError ? `the ${error.who} does not answer` : NO_DAEMON
  }
}
