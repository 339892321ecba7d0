// `runUp` runs `namegate up`: it decides how to protect the workload, writes and prints the configuration, and runs the daemon until a
// signal, or until the reader of its output ends. Without --write, nothing of it is left at the end, unless the daemon was killed. A lock
// keeps a second run for the same workload away from the folder of the first.

import { existsSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { defaultConfig } from '../../config/load.ts'
import { formatSocketAddress } from '../../core/socket-address.ts'
import { formatFault, messageOf, UnavailableError, UsageError } from '../../core/errors.ts'
import { forgetPins } from '../../daemon/noted-pins.ts'
import { forgetSocket } from '../../daemon/noted-sockets.ts'
import { runTool } from '../../intercept/tools.ts'
import { whyMissing } from '../../native/native-files.ts'
import { COMPILER, isBuilt, loadPosix } from '../../native/native.ts'
import { isAllowList } from '../../policy/allow-line.ts'
import { readingOf } from '../../sources/files/policy-files.ts'
import { makeFolder } from '../../native/make-folder.ts'
import { UP_PIN_PATH } from '../../core/pin-path.ts'
import { lockOrFail, removeFreeLocks } from '../../state/lock.ts'
import { EXIT_OK, type CommandOutput, type ParsedArguments } from '../command.ts'
import { isListening } from '../find-daemon.ts'
import { checkPaths } from '../policy/check-paths.ts'
import { program } from '../program.ts'
import { shellWord } from '../shell-word.ts'
import { addedBefore, writeNote } from '../up/added-lines.ts'
import { alreadyRuns } from '../up/already-runs.ts'
import { readUpOptions, type UpOptions } from '../up/arguments.ts'
import { besideDaemon, protects } from '../up/beside-daemon.ts'
import {
  ALLOW_FILE,
  CONFIG_FILE,
  ENDPOINTS_FILE,
  filesOf,
  POLICIES_FOLDER,
  SOCKET,
} from '../up/files.ts'
import { findPlan } from '../up/find.ts'
import { readPorts } from '../up/network.ts'
import { findOtherDaemon } from '../up/other-daemon.ts'
import type { UpPlan } from '../up/plan.ts'
import { policyWarnings } from '../up/policy-warnings.ts'
import { dropSettings, emptyFolder, isStateOf } from '../up/run-folder.ts'
import { runSession } from '../up/session.ts'
import { continued, kept, nextTime, welcome } from '../up/texts.ts'
import type { WatchedList } from '../up/watched-list.ts'

const RUN = '/run/namegate'
/** The first port that is tried for the listener. */
const PORT = 10_053
const PORTS_MAX = 1000
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

export async function runUp(read: ParsedArguments, output: CommandOutput): Promise<number> {
  const options = readUpOptions(read)
  if (typeof options === 'string') return read.wrong(options)
  mustRead(options)
  mustBeAble()
  const plan = await findPlan(options, runTool)
  const running = join(RUN, `up-${plan.name}`)
  if (options.write === running || options.write?.startsWith(`${running}/`) === true) {
    throw new UsageError(
      `--write ${options.write}: up removes this folder at its end, so give another`,
    )
  }
  if (await isListening(join(running, SOCKET))) throw await alreadyRuns(plan, running)
  // Inside a namespace, the daemon does not share the interception of this host.
  const other = findOtherDaemon()
  if (other !== undefined && (plan.namespace === undefined || protects(other, plan))) {
    throw besideDaemon(plan, other)
  }
  const posix = loadPosix()
  const isRunOurs = !existsSync(RUN)
  const lock = lockOrFail(posix, `${running}.lock`, `the folder ${running}`, {
    act: `protect ${plan.name}`,
    otherwise: 'wait until it ends',
  })
  try {
    return await runLocked(options, plan, running, output)
  } finally {
    lock.release()
    removeFreeLocks(posix)
    if (isRunOurs) removeEmpty(RUN)
  }
}

function removeEmpty(folder: string): void {
  try {
    rmdirSync(folder)
  } catch {
    // Another process has files in it, or has removed it.
  }
}

async function runLocked(
  options: UpOptions,
  plan: UpPlan,
  running: string,
  output: CommandOutput,
): Promise<number> {
  const stopped = untilStopped(output)
  const folder = options.write ?? running
  const socket = join(running, SOCKET)
  const config = join(folder, CONFIG_FILE)
  const pinPath = `${UP_PIN_PATH}${plan.name}`
  const isLeft = existsSync(running)
  const before = addedBefore(running, options.target)
  const continues =
    options.write === undefined && (await isStateOf(running, options.target, plan, runTool))
  const texts = filesOf({
    plan,
    command: commandLine(),
    program: program(),
    config,
    port: await freePort(plan),
    socket,
    pinPath,
    policies: options.policies,
    allows: [...options.allows, ...before.lines],
    audit: options.isAudited,
  })
  const hadSettings = writeFiles({ running, folder, continues }, texts, options)
  for (const [name, text] of texts) output.stdout(`# --- ${join(folder, name)}\n${text}\n`)
  const doubts = doubtsOf(options, folder, texts.has(ALLOW_FILE))
  for (const warning of [...plan.warnings, ...continued(before, hadSettings), ...doubts]) {
    output.stderr(`namegate: ${warning}\n`)
  }
  const list = listOf(options, folder)
  // If the start fails, what a killed run left is still in force, and another start can continue it.
  let isKept = isLeft
  try {
    const end = await runSession({
      workload: plan.name,
      servers: plan.servers.value.map(formatSocketAddress).join(', '),
      namespace: plan.namespace,
      config,
      socket,
      pinPath: plan.datapath.value === 'ebpf' ? pinPath : undefined,
      isAudited: options.isAudited,
      needsForce: options.write !== undefined && !options.isForced,
      list,
      output,
      stopped,
      onReady: (seconds, isBypassed) =>
        output.stdout(welcome(plan, options, { list, socket, seconds, isBypassed })),
    })
    isKept = end.isClosed || (isLeft && end.code !== EXIT_OK)
    if (end.code === EXIT_OK) output.stdout(nextTime(options, folder))
    return end.code
  } finally {
    if (!isKept) removeRun(running, config)
    if (options.write !== undefined) output.stdout(kept(plan, config))
  }
}

/** Removes the files of a run whose daemon has ended. A daemon that was killed has left its notes. */
function removeRun(running: string, config: string): void {
  forgetPins(config)
  forgetSocket(join(running, SOCKET))
  rmSync(running, { recursive: true, force: true })
}

/** Returns the warnings about policies that probably allow less than their author meant. */
function doubtsOf({ policies }: UpOptions, folder: string, hasList: boolean): readonly string[] {
  const paths = [...policies, ...(hasList ? [join(folder, ALLOW_FILE)] : [])]
  return policyWarnings(paths, join(folder, ENDPOINTS_FILE), defaultConfig())
}

/** Resolves at a signal, and when the reader of stdout or stderr has ended. */
async function untilStopped(output: CommandOutput): Promise<void> {
  await new Promise<void>((done) => {
    for (const signal of SIGNALS) process.on(signal, () => done())
    output.onNoReader?.(done)
  })
}

/** Throws UsageError if the daemon would refuse a file of the user. Nothing is written then. */
function mustRead({ policies }: UpOptions): void {
  const { faults } = checkPaths(policies, readingOf(defaultConfig().policies))
  if (faults.length === 0) return
  const lines = faults.map((fault) => `\n  ${formatFault(fault)}`)
  throw new UsageError(`up refuses the files of --allow-file and --policy:${lines.join('')}`)
}

/** Throws UnavailableError if this process cannot protect anything. */
function mustBeAble(): void {
  if (process.geteuid?.() !== 0) {
    throw new UnavailableError(
      `Cannot protect a workload without root: run 'sudo ${program()} up ...'. Without root, '${program()} exec' protects one command`,
    )
  }
  for (const addon of ['posix', 'udp', 'tcp', 'nftables'] as const) {
    if (isBuilt(addon)) continue
    throw new UnavailableError(
      `Cannot intercept queries: the native part ${addon} is missing: ${whyMissing(COMPILER)}`,
    )
  }
}

/** The command line as the user wrote it, in one line. */
function commandLine(): string {
  return ['namegate', ...process.argv.slice(2).map(shellWord)].join(' ')
}

async function freePort({ namespace }: UpPlan): Promise<number> {
  const used = await readPorts(runTool, namespace)
  for (let port = PORT; port < PORT + PORTS_MAX; port++) if (!used.has(port)) return port
  throw new UnavailableError(`Cannot find a free port from ${PORT} to ${PORT + PORTS_MAX}`)
}

interface Folders {
  /** The folder with the socket and the note. */
  readonly running: string
  /** The folder of the configuration, which is another one with --write. */
  readonly folder: string
  /** True if the state in `running` is kept. */
  readonly continues: boolean
}

/**
 * Writes the files. Returns true if the state had audit settings, which are removed. Throws UnavailableError if a file of --write exists
 * already, or if a file cannot be written.
 */
function writeFiles(
  { running, folder, continues }: Folders,
  texts: ReadonlyMap<string, string>,
  { write, isForced, target, allows }: UpOptions,
): boolean {
  const there = [...texts.keys()].map((name) => join(folder, name)).find((file) => existsSync(file))
  if (write !== undefined && !isForced && there !== undefined) {
    throw new UnavailableError(
      `${there} exists: give --force to replace it, or another --write DIR`,
    )
  }
  try {
    // First, because no note may name a folder that cannot be made.
    if (write !== undefined) makeFolder(join(folder, POLICIES_FOLDER))
    emptyFolder(running, continues)
    makeFolder(running)
    writeNote(running, { target, list: join(folder, ALLOW_FILE), allows })
    makeFolder(join(folder, POLICIES_FOLDER))
    for (const [name, text] of texts) writeFileSync(join(folder, name), text)
    return dropSettings(folder)
  } catch (error) {
    throw new UnavailableError(
      `Cannot write the configuration: ${messageOf(error)}: see --write DIR`,
    )
  }
}

/** Returns the list to which the user adds more. A list of the user stays when `up` ends, so it comes first. */
function listOf({ policies }: UpOptions, folder: string): WatchedList {
  const own = policies.find(isAllowList)
  return own === undefined
    ? { file: join(folder, ALLOW_FILE), isMade: true }
    : { file: own, isMade: false }
}
