// Runs the daemon of `namegate up` as a child process, prints refusals and changes of its list while it runs, and removes what it set up. If
// the daemon is killed, its rules stay in the kernel, and the workload stays closed. The child is `namegate run` with the generated
// configuration, so that the saved configuration does the same. The child has a process group of its own: Ctrl-C reaches only this process,
// which ends the child in an orderly way.

import { spawn, type ChildProcess } from 'node:child_process'
import { join } from 'node:path'
import { stayAlive, systemClock } from '../../core/clock.ts'
import { UnavailableError } from '../../core/errors.ts'
import { runTool } from '../../intercept/tools.ts'
import { packageRoot } from '../../native/native-files.ts'
import { loadBpf } from '../../native/native.ts'
import type { Client } from '../../client/client.ts'
import { clientOf } from '../client.ts'
import { EXIT_NEGATIVE, EXIT_OK, EXIT_UNAVAILABLE, type CommandOutput } from '../command.ts'
import { followList, textIn, type FollowedList } from './list-changes.ts'
import { runIn } from './network.ts'
import { Refusals } from './refusals.ts'
import { waitingText } from './waiting-text.ts'
import type { WatchedList } from './watched-list.ts'

export interface SessionOptions {
  /** Path of the network namespace in which the daemon runs. Undefined for that of this process. */
  readonly namespace: string | undefined
  readonly config: string
  readonly socket: string
  /** The eBPF pins of the daemon. Undefined for a daemon with nftables. */
  readonly pinPath: string | undefined
  /** True if the same command would refuse to replace the configuration. */
  readonly needsForce: boolean
  /** True if the daemon starts in audit, as the user asked. */
  readonly isAudited: boolean
  /** The name of the workload that `up` protects. */
  readonly workload: string
  /** The DNS servers that the daemon asks, as text. */
  readonly servers: string
  /** The list to which refusals propose a line. */
  readonly list: WatchedList
  readonly output: CommandOutput
  /** Ends the session when it resolves. */
  readonly stopped: Promise<void>
  /**
   * Called once, when the daemon is ready. `seconds`: since the start of this process. `isBypassed`: a bypass that was set by hand before
   * the start is still in force, so nothing is enforced.
   */
  readonly onReady: (seconds: number, isBypassed: boolean) => void
}

const LOOK_MS = 50
const WAITING_MS = 5000
const REPEATED_MS = 10_000
/** How long the daemon can take to answer that it ends. */
const ANSWER_MS = 2000
/** The daemon removes the rules of interception before it stops to answer, so the workload loses no query. */
const DETACH = { query: { interception: '1' }, timeoutMs: ANSWER_MS } as const
/** The longest wait for the orderly end of the daemon. */
const END_MS = 15_000
const KILLED =
  'namegate: the daemon was killed. Its rules stay in force: the workload can ask no name until a daemon runs. Run the same command again'
const FOLLOWED = ['deny', 'audit'] as const

export interface SessionEnd {
  readonly code: number
  /** True: the daemon was killed, and its rules are still in force. The next `up` continues with them. */
  readonly isClosed: boolean
}

/** Runs until `stopped` resolves, or until the daemon ends. */
export async function runSession(options: SessionOptions): Promise<SessionEnd> {
  const alive = stayAlive()
  const { file } = options.list
  const list = { file, text: textIn(file) }
  const daemon = new ChildDaemon(options)
  try {
    const until = Promise.race([options.stopped, daemon.ended])
    let isOver = false
    void until.then(() => (isOver = true))
    const mode = await Promise.race([
      untilReady(options, () => isOver),
      until.then(() => undefined),
    ])
    const isReady = mode !== undefined
    if (isReady) {
      options.onReady(process.uptime(), mode === 'bypass')
      await follow(options, list, until, () => isOver)
    }
    const { code } = daemon
    // A daemon that could not start may have no lock, so the rules can belong to another. A daemon that ended with 0 was asked to.
    if (code !== undefined && (!isReady || code === EXIT_OK)) return { code, isClosed: false }
    if (code !== undefined) {
      const force = options.needsForce ? ' with --force' : ''
      options.output.stderr(`${KILLED}${force} to continue; Ctrl-C then removes the rules\n`)
      return { code: EXIT_UNAVAILABLE, isClosed: true }
    }
    // Until now the daemon held the locks of what is removed here.
    if (await detached(options, daemon)) {
      await removeInterception(options)
    } else {
      await daemon.kill()
      await removeInterception(options)
      await removeEnforcement(options)
    }
    return { code: EXIT_OK, isClosed: false }
  } finally {
    alive.cancel()
  }
}

/** Asks the daemon to remove its enforcement and to end. Returns false if it did not end in an orderly way. */
async function detached(options: SessionOptions, daemon: ChildDaemon): Promise<boolean> {
  const client = ownClient(options)
  const late = systemClock.now() + END_MS
  options.output.stderr('namegate: ending, and removing the rules\n')
  daemon.isQuiet = true
  while (daemon.code === undefined && systemClock.now() < late) {
    try {
      await client.request('POST /v1/detach', DETACH)
      await Promise.race([daemon.ended, pause(END_MS)])
    } catch {
      // The daemon still starts, or has just ended.
      await pause(LOOK_MS)
    }
  }
  return daemon.code !== undefined && !daemon.wasKilled
}

/** Gives DNS back to the servers that the workload asks, if the daemon could not. */
async function removeInterception({ namespace, config, output }: SessionOptions): Promise<void> {
  const command = commandIn(namespace, ['intercept', 'down', '--config', config])
  const { code, stderr } = await runIn(runTool, undefined, command)
  // EXIT_NEGATIVE: the daemon has removed the rules already.
  if (code !== EXIT_OK && code !== EXIT_NEGATIVE) {
    output.stderr(`namegate: the interception was not removed: ${stderr}\n`)
  }
}

/** Removes the enforcement of a daemon that did not end in an orderly way. */
async function removeEnforcement({ namespace, pinPath, output }: SessionOptions): Promise<void> {
  if (pinPath !== undefined) {
    const { detachAll } = await import('../../datapath/ebpf/break-glass.ts')
    detachAll(loadBpf(), pinPath)
    return
  }
  const command = ['nft', 'delete', 'table', 'inet', 'namegate']
  const { code, stderr } = await runIn(runTool, namespace, command)
  if (code !== 0) output.stderr(`namegate: the enforcement was not removed: ${stderr}\n`)
}

class ChildDaemon {
  readonly ended: Promise<void>
  /** True: its log is not printed any more. */
  isQuiet = false
  /** True: a signal ended it, so its rules are still in force. */
  wasKilled = false
  readonly #child: ChildProcess
  #code: number | undefined

  constructor({ namespace, config, isAudited, output }: SessionOptions) {
    const [program = '', ...args] = commandIn(namespace, ['run', '--config', config])
    this.#child = spawn(program, args, {
      detached: true,
      stdio: ['ignore', 'inherit', 'pipe'],
      env: { ...process.env, NO_COLOR: '1' },
    })
    let rest = ''
    let isAskedFor = isAudited
    const isShown = (line: string): boolean => {
      if (this.isQuiet || ROUTINE.test(line)) return false
      const isStart = isAskedFor && AUDIT_STARTS.test(line)
      if (isStart) isAskedFor = false
      return !isStart
    }
    this.#child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      const lines = (rest + text).split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines.filter(isShown)) output.stderr(`${line}\n`)
    })
    this.ended = new Promise((done) => {
      this.#child.on('error', (error) => {
        output.stderr(`namegate: Cannot start the daemon: ${error.message}\n`)
        this.#end(1, done)
      })
      this.#child.on('close', (code, signal) => {
        this.wasKilled = signal !== null
        this.#end(code ?? 1, done)
      })
    })
  }

  /** The exit code. Undefined as long as the daemon runs. */
  get code(): number | undefined {
    return this.#code
  }

  async kill(): Promise<void> {
    this.#child.kill('SIGKILL')
    await this.ended
  }

  #end(code: number, done: () => void): void {
    this.#code ??= code
    done()
  }
}

/** Lines of the daemon's log that report neither a problem nor its end. */
const ROUTINE =
  /^\[[^\]]*\] (?:INFO|DEBUG|TRACE)\b(?!.*(?:in force again|mode changed|audit (?:re)?set))/

/** The line of a daemon that begins to audit. */
const AUDIT_STARTS = / mode changed: .*"mode":"audit"/

function commandIn(namespace: string | undefined, args: readonly string[]): readonly string[] {
  const words = namespace === undefined ? [] : ['nsenter', `--net=${namespace}`, '--']
  return [...words, join(packageRoot(), 'bin/namegate'), ...args]
}

function ownClient({ socket }: SessionOptions): Client {
  return clientOf({ path: socket, named: 'of this command' })
}

/** Resolves with the mode when the daemon is ready, and with undefined when `isOver`. Writes what it waits for, if that takes long. */
async function untilReady(
  options: SessionOptions,
  isOver: () => boolean,
): Promise<string | undefined> {
  const client = ownClient(options)
  let told = ''
  for (;;) {
    const { reasons, mode } = await whyNotReady(client)
    if (isOver()) return undefined
    if (reasons.length === 0) return mode
    const text = waitingText(reasons, options.servers)
    if (process.uptime() * 1000 > WAITING_MS && text !== told) {
      told = text
      options.output.stderr(`namegate: ${text}\n`)
    }
    await pause(LOOK_MS)
  }
}

async function whyNotReady(client: Client): Promise<{ reasons: readonly string[]; mode: string }> {
  try {
    const { ready, notReady, mode } = (await client.request('GET /v1/status')).value
    return { reasons: ready ? [] : notReady, mode }
  } catch (error) {
    if (error instanceof UnavailableError) return { reasons: ['the daemon starts'], mode: '' }
    throw error
  }
}

async function pause(ms: number): Promise<void> {
  await new Promise<void>((done) => systemClock.after(ms, done))
}

/** Prints refusals and changes of the list until `end`. `isOver` returns true from then on. */
async function follow(
  options: SessionOptions,
  list: FollowedList,
  end: Promise<void>,
  isOver: () => boolean,
): Promise<void> {
  const { output } = options
  const refusals = new Refusals(options.list, options.workload)
  // Refusals from before a change stand before it.
  const print = (lines: readonly string[]): void => {
    for (const line of [...refusals.repeated(), ...lines]) output.stdout(`${line}\n`)
  }
  const more = systemClock.every(REPEATED_MS, () => print([]))
  for (const verdict of FOLLOWED) void printRefusals(options, verdict, refusals, isOver)
  void followList(ownClient(options), list, print, isOver)
  await end
  more.cancel()
  print([])
}

/** Prints the refusals of one verdict. If the stream breaks, for example because the reader was slow, opens it again. */
async function printRefusals(
  options: SessionOptions,
  verdict: (typeof FOLLOWED)[number],
  refusals: Refusals,
  isOver: () => boolean,
): Promise<void> {
  const client = ownClient(options)
  for (let isFirst = true; !isOver(); isFirst = false) {
    try {
      const query = { follow: '1', verdict: [verdict], ...(isFirst ? {} : { last: 0 }) } as const
      for await (const flow of client.rows('GET /v1/flows', { query })) {
        // While the daemon ends, it audits: nothing is refused any more.
        if (isOver()) return
        const line = refusals.take(flow)
        if (line !== undefined) options.output.stdout(`${line}\n`)
      }
    } catch {
      // The daemon ends, or the stream broke.
    }
    await pause(LOOK_MS)
  }
}
