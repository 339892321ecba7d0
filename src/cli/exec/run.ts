// `runExec` runs `namegate exec`: it starts the launcher, the uplink, the gate and the command. Slow steps run at the same time: the gate
// is loaded and made while the launcher makes its namespaces and the uplink is opened. The command starts last, after the kernel has
// confirmed that it enforces policy. If a step before this fails, the run ends without the command.

import { writeFileSync } from 'node:fs'
import { constants, homedir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../../core/clock.ts'
import { readNodeAddresses } from '../../config/node-addresses.ts'
import { UnavailableError } from '../../core/errors.ts'
import { parseAddress } from '../../core/ip.ts'
import { formatSocketAddress, type SocketAddress } from '../../core/socket-address.ts'
import type { Daemon } from '../../daemon/daemon.ts'
import { runTool } from '../../intercept/tools.ts'
import { loadConntrack, loadNetlink, loadPosix, type ConntrackAddon } from '../../native/native.ts'
import type { Allow } from '../../policy/allow-line.ts'
import { clearedEnv } from '../../sandbox/environment.ts'
import { execFault } from '../../sandbox/faults.ts'
import type { FileView } from '../../sandbox/file-view.ts'
import { callerNow, hiddenFrom } from '../../sandbox/hidden.ts'
import { innerAddons } from '../../sandbox/inner-addons.ts'
import { Launcher, launcherProgram, type LaunchEnd, type Publish } from '../../sandbox/launcher.ts'
import { findProject, watchProjects, type ProjectPlace } from '../../sandbox/project.ts'
import { makeRunFolder, sweepRunFolders, type RunFolder } from '../../sandbox/run-folder.ts'
import { isPrivileged, ownsTerminal, resolvText, workingFolder } from '../../sandbox/caller.ts'
import { chooseUserUplink, openUserUplink, type UserUplink } from '../../sandbox/uplink-user.ts'
import { BLOCKS, openVeth } from '../../sandbox/uplink-veth.ts'
import type { Uplink, UplinkOptions } from '../../sandbox/uplink.ts'
import type { Recorder } from '../../sandbox/record.ts'

export interface ExecOptions {
  readonly allows: readonly Allow[]
  readonly policyFile: string | undefined
  readonly upstreams: readonly SocketAddress[]
  readonly audit: boolean
  /** How long an address stays allowed after the TTL of its answer, in milliseconds. */
  readonly graceMs: number
  readonly publish: readonly Publish[]
  readonly uplink: UserUplink | 'veth' | undefined
  readonly denyResponse: 'refused' | 'nxdomain'
  /** Files of the command that differ from the caller's. */
  readonly view: FileView
  /** With `--env-clear`, the variables that the command keeps. Undefined: it keeps all. */
  readonly kept: readonly string[] | undefined
  /** True if the allow-list of the project counts. */
  readonly usesProject: boolean
  readonly command: readonly string[]
  /** Writes the reason if the command was not run. */
  readonly say: (text: string) => void
  /** Writes a note. With `--quiet` it writes nothing. */
  readonly note: (text: string) => void
  /** Writes a refusal when it happens. Undefined without `--verbose`. */
  readonly told: ((text: string) => void) | undefined
}

export interface ExecResult {
  readonly code: number
  /** What the command asked and reached. Undefined if the command did not run. */
  readonly recorder: Recorder | undefined
}

/** Signals that this process sends on to the command. */
const FORWARDED = ['SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGTERM', 'SIGUSR1', 'SIGUSR2'] as const
const LOOK_MS = 1000
const VERBOSE_MS = 100
const SIGNAL_BASE = 128

/** Runs the command, and resolves when it has ended. Throws InvalidInputError or UnavailableError if the command could not be started. */
export async function runExec(given: ExecOptions): Promise<ExecResult> {
  if (given.policyFile !== undefined) {
    const { mustReadPolicy } = await import('./gate.ts')
    mustReadPolicy(given.policyFile)
  }
  const place = { folder: workingFolder(), home: homedir(), uid: process.geteuid?.() ?? 0 }
  const options = given.usesProject ? withProject(given, place) : given
  const changed = given.usesProject ? watchProjects(place) : () => []
  const result = await runWith(options)
  for (const file of changed()) {
    options.note(`${file} changed during the run: read it, because the next run uses it`)
  }
  return result
}

/** Adds what the allow-list of the project allows. The command cannot write this list. */
function withProject(options: ExecOptions, place: ProjectPlace): ExecOptions {
  const project = findProject(place)
  if (project.kind === 'none') return options
  const { file } = project
  if (project.kind === 'refused') {
    options.note(`${file} is not used: ${project.reason}`)
    return options
  }
  const { allows } = project
  const count = allows.length === 1 ? '1 line' : `${allows.length} lines`
  options.note(`allows what ${file} says (${count}); --no-project turns this off`)
  return {
    ...options,
    allows: [...options.allows, ...allows],
    view: { ...options.view, locked: [...options.view.locked, file] },
  }
}

async function runWith(options: ExecOptions): Promise<ExecResult> {
  const folder = makeRunFolder(loadPosix())
  const undo: Undo = [() => folder.remove()]
  try {
    return await runIn(folder, options, undo)
  } finally {
    for (const step of undo.reverse()) await step()
  }
}

type Undo = (() => void | Promise<void>)[]

async function runIn(folder: RunFolder, options: ExecOptions, undo: Undo): Promise<ExecResult> {
  const privileged = isPrivileged()
  const foreground = ownsTerminal()
  const { kept, view } = options
  const hidden = hiddenFrom(callerNow())
  const resolv = join(folder.path, 'resolv.conf')
  writeFileSync(resolv, resolvText(), { mode: 0o644 })
  const launcher = new Launcher({
    program: launcherProgram(),
    posix: loadPosix(),
    privileged,
    foreground,
    resolv,
    hidden: { ...hidden, env: kept === undefined ? hidden.env : clearedEnv(hidden.env, kept) },
    view,
    publish: options.publish,
    command: options.command,
  })
  undo.push(async () => {
    launcher.kill()
    await launcher.ended
  })
  const release = forwardSignals(launcher, foreground)
  undo.push(release)
  const loading = import('./gate.ts')
  loading.catch(() => undefined)
  // Read before the uplink is made, because the kernel would let this wait until the uplink's interfaces are made.
  const node = readNodeAddresses()
  const inner = launcher.sockets()
  const uplink = openUplink(options, { pid: launcher.pid, isolated: inner, privileged })
  uplink.ready.catch(() => undefined)
  undo.push(async () => await uplink.stop())
  const sockets = await inner
  if (sockets === undefined) return notRun(await launcher.ended, options)
  const { makeExecGate, startExecGate, upstreamsOf } = await loading
  const upstreams = upstreamsOf(options.upstreams)
  const outer = { netlink: loadNetlink(), conntrack: loadConntrack(), posix: loadPosix() }
  const addons = innerAddons(outer, sockets, launcher.pid)
  const { addresses, callerAddresses } = uplink
  const nodeAddresses = [...node, ...callerAddresses.flatMap((each) => parseAddress(each) ?? [])]
  const daemon = makeExecGate({ ...options, upstreams, sockets, addons, addresses, nodeAddresses })
  undo.push(() => daemon.stop())
  // The datapath attaches to the uplink's interface, which exists when the uplink is ready.
  const over = await Promise.race([uplink.ready, launcher.ended])
  if (over !== undefined) return notRun(over, options)
  await startExecGate(daemon, options.policyFile)
  const recorder = await record(daemon, addons.conntrack, options, undo)
  launcher.go()
  // When the command has started, its mounts keep the files that it needs. The folder is removed then, so that it cannot stay behind.
  void launcher.started.then(() => {
    folder.remove()
    sweepRunFolders(loadPosix(), systemClock)
  })
  const end = await launcher.ended
  // Reads the last refused packets and records them.
  daemon.housekeeping.look()
  recorder.look()
  if (isUnanswered(daemon)) noteSilence(upstreams, options)
  return end.kind === 'failed' ? notRun(end, options) : { code: codeOf(end), recorder }
}

/** True if the command asked DNS servers, and none of them answered in time. */
function isUnanswered({ proxy }: Daemon): boolean {
  const { answers, failed } = proxy.upstream.pool
  const isAsked = proxy.admission.counters.allowed > 0
  return isAsked && failed.some((count) => count > 0) && answers.every((count) => count === 0)
}

function noteSilence(upstreams: readonly SocketAddress[], { note }: ExecOptions): void {
  const asked = upstreams.map(formatSocketAddress).join(', ')
  note(`no DNS server answered (asked ${asked}): name another one with --upstream ADDRESS`)
}

function openUplink(
  options: ExecOptions,
  { privileged, ...launcher }: Pick<UplinkOptions, 'pid' | 'isolated'> & { privileged: boolean },
): Uplink {
  const shared = { ...launcher, clock: systemClock, program: launcherProgram() }
  const { uplink, note } = options
  if (privileged) {
    if (uplink !== undefined && uplink !== 'veth') {
      throw new UnavailableError(`Cannot use --uplink ${uplink} as root: as root, exec uses veth`)
    }
    return openVeth({ ...shared, run: runTool, number: process.pid % BLOCKS, say: note })
  }
  if (uplink === 'veth') throw new UnavailableError('Cannot use --uplink veth: it needs root')
  return openUserUplink(chooseUserUplink(uplink), shared)
}

/**
 * Makes the recorder, which reads flows and connections once a second until the run ends. With `--verbose` it reads them, and the kernel's
 * reports, ten times a second.
 */
async function record(
  daemon: Daemon,
  conntrack: ConntrackAddon,
  { told }: ExecOptions,
  undo: Undo,
): Promise<Recorder> {
  const [{ Recorder: Made }, { Conntrack }, { refusalLine }] = await Promise.all([
    import('../../sandbox/record.ts'),
    import('../../native/netfilter/conntrack.ts'),
    import('../../sandbox/summary.ts'),
  ])
  const table = new Conntrack(conntrack, conntrack.ctOpen(), -1)
  const { core, flows } = daemon
  const recorder = new Made({
    core,
    flows,
    dump: (visit) => table.dump(visit),
    onRefused: (each) => told?.(refusalLine(each)),
  })
  const timer = systemClock.every(told === undefined ? LOOK_MS : VERBOSE_MS, () => {
    if (told !== undefined) daemon.housekeeping.look()
    recorder.look()
  })
  undo.push(() => timer.cancel())
  return recorder
}

function notRun(end: LaunchEnd, { say }: ExecOptions): ExecResult {
  if (end.kind !== 'failed') return { code: codeOf(end), recorder: undefined }
  const { code, text } = execFault(end)
  say(text)
  return { code, recorder: undefined }
}

/** Returns the exit code that a shell would report. */
function codeOf(end: Exclude<LaunchEnd, { readonly kind: 'failed' }>): number {
  return end.kind === 'exit' ? end.code : SIGNAL_BASE + end.signal
}

/**
 * Sends signals on to the command. When ^Z stops the command, this process stops too, so that the caller's shell notices. Returns a
 * function that removes the handlers of signals.
 */
function forwardSignals(launcher: Launcher, foreground: boolean): () => void {
  const forward = (_name: NodeJS.Signals, number: number): void => launcher.signal(number)
  for (const name of FORWARDED) process.on(name, forward)
  const resume = (): void => launcher.resume(foreground && ownsTerminal())
  process.on('SIGCONT', resume)
  launcher.onStopped = (signal) => {
    if (!foreground || signal === constants.signals.SIGTTIN) return
    process.kill(process.pid, 'SIGTSTP')
  }
  return () => {
    for (const name of FORWARDED) process.removeListener(name, forward)
    process.removeListener('SIGCONT', resume)
  }
}
