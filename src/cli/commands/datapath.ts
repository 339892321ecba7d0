// `namegate datapath verify|detach|close|mode`. `mode` and `detach` are break glass: where the kernel enforces they
// work on the pinned maps themselves, first and whether a daemon answers or not, and then tell the daemon.

import { setPinnedMode } from '../../datapath/ebpf/break-glass.ts'
import type { Mode } from '../../datapath/entries.ts'
import { stayAlive, systemClock } from '../../core/clock.ts'
import { InvalidInputError, UnavailableError } from '../../core/errors.ts'
import { loadBpf, loadNetlink } from '../../native/native.ts'
import { openClient, type Client } from '../client.ts'
import {
  EXIT_NEGATIVE,
  EXIT_OK,
  toJson,
  type CommandOutput,
  type ParsedArguments,
} from '../command.ts'
import { CONFIG_FILES, findConfigFile } from '../config-file.ts'
import { fieldsOf, listOf, textOf } from '../fields.ts'
import { notedPinPath } from '../../daemon/noted-pins.ts'
import { readDatapathKind, readPinPath } from '../pin-path.ts'
import { SilentDaemonError } from '../silence.ts'
import { formatTable } from '../table.ts'

const MODES: readonly Mode[] = ['enforce', 'audit', 'bypass']
/** A daemon that is stopped or stuck must not keep anyone from breaking the glass. */
const TELL_MS = 1000
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
  const answer = fieldsOf(await (await openClient(read)).get('/v1/verify'))
  const differences = listOf(answer['differences']).map(fieldsOf)
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

/** The pins first, with nothing loaded that is not needed for them; then the daemon is told. */
async function setMode(mode: Mode, read: ParsedArguments, output: CommandOutput): Promise<number> {
  const file = findConfigFile(read.texts.get('config'))
  const pinned = file !== undefined && (await setModeBeside(file, mode))
  // What a stopped daemon reads when it wakes up must not undo what was set since: it looks at the pins itself.
  const told = await tellMode(read, { mode: pinned ? 'pinned' : mode }, pinned)
  const isTold = told === 'told'
  if (read.texts.has('output')) output.stdout(toJson({ mode, pins: pinned, daemon: isTold }))
  else output.stdout(`mode is ${mode}${isTold ? '' : `; ${told}, the kernel enforces so`}\n`)
  return EXIT_OK
}

/** Where the kernel enforces without a daemon: false when there is no such place. */
async function setModeBeside(file: string, mode: Mode): Promise<boolean> {
  // Where the file has another kind by now, pins that are still there enforce, and no daemon starts beside them.
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

/** With a config that is wrong elsewhere there is no socket to ask at; the pins have the mode all the same. */
async function tellMode(read: ParsedArguments, body: object, pinned: boolean): Promise<Told> {
  try {
    return await tell(await openClient(read), '/v1/mode', body, pinned)
  } catch (error) {
    if (pinned && error instanceof InvalidInputError) return NO_DAEMON
    const isAbsent = error instanceof UnavailableError && !(error instanceof SilentDaemonError)
    if (pinned || !isAbsent) throw error
    const file = findConfigFile(read.texts.get('config'))
    const where =
      file === undefined
        ? `there is none of ${CONFIG_FILES.join(' and ')}`
        : `${file} has no datapath.kind ebpf`
    throw new UnavailableError(
      `Cannot set the mode: ${where}, so its pins are not known, and no daemon answers: give the --config of the daemon`,
    )
  }
}

async function detach(read: ParsedArguments, output: CommandOutput): Promise<number> {
  const [{ readConfig }, { enforcing, takeAway }] = await Promise.all([
    import('../read-config.ts'),
    import('../../daemon/stale-datapaths.ts'),
  ])
  const config = readConfig(read.texts.get('config'))
  const client = await openClient(read)
  const { datapath } = config
  // Asked first: a daemon of another kind than the file says has locks until it ends.
  const there = enforcing(config)
  const isKernels = there.length > 0 || datapath.kind !== 'memory'
  const told = (await tell(client, '/v1/detach', {}, isKernels)) === 'told'
  // After the daemon did it nothing of its own is left; a daemon that hangs did not.
  const taken = there.map(takeAway)
  const intercepted = await isIntercepted(told && config.intercept.onExit === 'open')
  if (read.texts.has('output')) {
    output.stdout(toJson({ detached: true, taken, daemon: told, intercepted }))
    return EXIT_OK
  }
  const what = taken.length === 0 ? 'nothing of namegate was there' : taken.join(', ')
  output.stdout(`detached: ${what}${told ? ', and the daemon ends' : ''}\n`)
  if (intercepted) output.stdout(INTERCEPTED)
  return EXIT_OK
}

const INTERCEPTED =
  "DNS is still intercepted and waits for a daemon: 'namegate intercept down' gives it back to the servers that workloads ask\n"
/** A daemon that takes its rules away when it ends does so within this time. */
const ENDS_MS = 3000
const LOOK_MS = 50

/** Whether rules of interception are in force here; false where that cannot be seen. */
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
  const [{ readConfig }, { closeEndpoints }] = await Promise.all([
    import('../read-config.ts'),
    import('../datapath/close-endpoints.ts'),
  ])
  const result = await closeEndpoints(readConfig(read.texts.get('config')))
  const { closed, waiting, kept, faults } = result
  for (const fault of faults) output.stderr(`${fault}\n`)
  if (faults.length > 0) output.stderr('closed what the last daemon wrote down instead\n')
  if (read.texts.has('output')) output.stdout(toJson({ closed, waiting, kept }))
  else {
    output.stdout(`closed: ${closed.length === 0 ? 'nothing' : closed.join(', ')}\n`)
    if (waiting.length > 0) output.stdout(`not there yet: ${waiting.join(', ')}\n`)
    if (kept.length > 0) output.stdout(`fenced before: ${kept.join(', ')}\n`)
  }
  return EXIT_OK
}

/** What became of telling the daemon: it did it, or why not in words. */
type Told = 'told' | typeof NO_DAEMON | `the ${string} does not answer`

/** With pins the daemon need not be there; without, there is nothing else to do it. */
async function tell(
  client: Client,
  path: string,
  body: object,
  mayBeAbsent: boolean,
): Promise<Told> {
  try {
    await client.get(path, { body, timeoutMs: TELL_MS })
    return 'told'
  } catch (error) {
    if (!mayBeAbsent || !(error instanceof UnavailableError)) throw error
    return error instanceof SilentDaemonError ? `the ${error.who} does not answer` : NO_DAEMON
  }
}
