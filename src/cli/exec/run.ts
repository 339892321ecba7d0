// `runExec` runs `namegate exec`: it starts the launcher, the uplink, the gate and the command. Slow steps run at the same time: the gate
// is loaded and made while the launcher makes its namespaces and the uplink is opened. The command starts last, after the kernel has
// confirmed that it enforces policy. If a step before this fails, the run ends without the command.

import { writeFileSync } from 'node:fs'
import { constants } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../../core/clock.ts'
import { UnavailableError } from '../../core/errors.ts'
import type { SocketAddress } from '../../core/socket-address.ts'
import type { Daemon } from '../../daemon/daemon.ts'
import { runTool } from '../../intercept/tools.ts'
import { loadConntrack, loadNetlink, loadPosix, type ConntrackAddon } from '../../native/native.ts'
import type { Allow } from '../../policy/allow-line.ts'
import { execFault } from '../../sandbox/faults.ts'
import { callerNow, hiddenFrom } from '../../sandbox/hidden.ts'
import { innerAddons } from '../../sandbox/inner-addons.ts'
import { Launcher, launcherProgram, type LaunchEnd, type Publish } from '../../sandbox/launcher.ts'
import { makeRunFolder, sweepRunFolders, type RunFolder } from '../../sandbox/run-folder.ts'
import { isPrivileged, ownsTerminal, resolvText } from '../../sandbox/caller.ts'
import { chooseUserUplink, openUserUplink, type UserUplink } from '../../sandbox/uplink-user.ts'
import { BLOCKS, openVeth } from '../../sandbox/uplink-veth.ts'
import type { Uplink } from '../../sandbox/uplink.ts'
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
  readonly command: readonly string[]
  /** Writes the reason if the command was not run. */
  readonly say: (text: string) => void
  /** Writes a note. With `--quiet` it writes nothing. */
  readonly note: (text: string) => void
}

export interface ExecResult {
  readonly code: number
  /** What the command asked and reached. Undefined if the command did not run. */
  readonly recorder: Recorder | undefined
}

/** Signals that this process sends on to the command. */
const FORWARDED = ['SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGTERM', 'SIGUSR1', 'SIGUSR2'] as const
const LOOK_MS = 1000
const SIGNAL_BASE = 128

/** Runs the command, and resolves when it has ended. Throws InvalidInputError or UnavailableError if the command could not be started. */
export async function runExec(options: ExecOptions): Promise<ExecResult> {
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
  const resolv = join(folder.path, 'resolv.conf')
  writeFileSync(resolv, resolvText(), { mode: 0o644 })
  const launcher = new Launcher({
    program: launcherProgram(),
    posix: loadPosix(),
    privileged,
    foreground,
    resolv,
    hidden: hiddenFrom(callerNow()),
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
  const sockets = await launcher.sockets()
  if (sockets === undefined) return notRun(await launcher.ended, options)
  const uplink = openUplink(options, launcher.pid, privileged)
  uplink.ready.catch(() => undefined)
  undo.push(async () => await uplink.stop())
  const { makeExecGate, startExecGate } = await loading
  const outer = { netlink: loadNetlink(), conntrack: loadConntrack(), posix: loadPosix() }
  const addons = innerAddons(outer, sockets, launcher.pid)
  const { addresses } = uplink
  const daemon = makeExecGate({ ...options, sockets, addons, addresses })
  undo.push(() => daemon.stop())
  // The datapath attaches to the uplink's interface, which exists when the uplink is ready.
  const over = await Promise.race([uplink.ready, launcher.ended])
  if (over !== undefined) return notRun(over, options)
  await startExecGate(daemon, options.policyFile)
  const recorder = await record(daemon, addons.conntrack, undo)
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
  return end.kind === 'failed' ? notRun(end, options) : { code: codeOf(end), recorder }
}

function openUplink(options: ExecOptions, pid: number, privileged: boolean): Uplink {
  const shared = { clock: systemClock, pid, program: launcherProgram() }
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

/** Makes the recorder, which reads flows and connections once a second until the run ends. */
async function record(daemon: Daemon, conntrack: ConntrackAddon, undo: Undo): Promise<Recorder> {
  const [{ Recorder: Made }, { Conntrack }] = await Promise.all([
    import('../../sandbox/record.ts'),
    import('../../native/netfilter/conntrack.ts'),
  ])
  const table = new Conntrack(conntrack, conntrack.ctOpen(), -1)
  const { core, flows } = daemon
  const recorder = new Made({ core, flows, dump: (family, visit) => table.dump(family, visit) })
  const timer = systemClock.every(LOOK_MS, () => recorder.look())
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
