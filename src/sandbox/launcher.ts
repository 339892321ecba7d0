// A Launcher starts the launcher (native/sandbox/), the process that makes the command's namespaces and runs the command. It receives the
// sockets that the launcher opened inside the namespaces, and exchanges lines of text with the launcher. The launcher ends when this
// process ends, and the command ends when the launcher ends.

import { spawn, type ChildProcess } from 'node:child_process'
import { existsSync } from 'node:fs'
import { Duplex } from 'node:stream'
import { UnavailableError } from '../core/errors.ts'
import { nativeFile, whyMissing } from '../native/native-files.ts'
import { errnoName, type Posix } from '../native/native.ts'
import type { FileView } from './file-view.ts'
import type { Hidden } from './hidden.ts'

export interface LaunchOptions {
  readonly program: string
  readonly posix: Pick<Posix, 'socketPair' | 'receiveFds' | 'closeFd'>
  /** True if the caller can make namespaces without a user namespace. */
  readonly privileged: boolean
  /** True if the caller's process group is in the foreground of the terminal. */
  readonly foreground: boolean
  /** The path of the command's resolv.conf. */
  readonly resolv: string
  readonly hidden: Hidden
  readonly view: FileView
  readonly publish: readonly Publish[]
  readonly command: readonly string[]
}

/** A port on the caller's side whose TCP connections are forwarded to the command's loopback (`--publish`). */
export interface Publish {
  /** The address on the caller's side, without brackets. It is 127.0.0.1 if the option has no address. */
  readonly address: string
  readonly port: number
  /** The port on the command's loopback. */
  readonly inner: number
}

/** How the launcher ended. `exit` and `killed`: the command ran. `failed`: `step` failed with `errno`, and the command did not run. */
export type LaunchEnd =
  | { readonly kind: 'exit'; readonly code: number }
  | { readonly kind: 'killed'; readonly signal: number }
  | {
      readonly kind: 'failed'
      readonly step: string
      readonly errno: number
      readonly detail: string
    }

/** Sockets (file descriptors) that were opened in the command's network namespace. */
export interface InnerSockets {
  readonly listeners: readonly {
    readonly family: 4 | 6
    readonly udp: number
    readonly tcp: number
  }[]
  /** Blocking netlink sockets of netfilter that are not subscribed to events. */
  readonly netlink: readonly number[]
  /** A socket that receives changes of interfaces. */
  readonly links: number
}

/** The same number as in native/sandbox/sockets.h. */
const NETLINKS = 10

/** One launcher, from its start to its end. Throws UnavailableError if it cannot be started. */
export class Launcher {
  readonly ended: Promise<LaunchEnd>
  /** Resolves when the command has started, or when the launcher ended without starting the command. */
  readonly started: Promise<void>
  /** Called with the signal when a signal stopped the command, as ^Z does. */
  onStopped: ((signal: number) => void) | undefined
  readonly #options: LaunchOptions
  readonly #child: ChildProcess
  readonly #control: Duplex
  readonly #sockets: Promise<InnerSockets | undefined>
  readonly #inbox: number
  #text = ''
  #end: LaunchEnd | undefined
  #going = false
  #gotSockets: (sockets: InnerSockets | undefined) => void = () => undefined
  #gotStart: () => void = () => undefined

  constructor(options: LaunchOptions) {
    this.#options = options
    const pair = options.posix.socketPair()
    if (typeof pair === 'number')
      throw new UnavailableError(`Cannot open sockets: ${errnoName(pair)}`)
    const [inbox, outbox] = pair
    this.#inbox = inbox
    this.#sockets = new Promise((done) => (this.#gotSockets = done))
    this.started = new Promise((done) => (this.#gotStart = done))
    this.#child = spawn(options.program, ['run', ...options.command], {
      env: options.hidden.env,
      stdio: ['inherit', 'inherit', 'inherit', 'pipe', outbox],
    })
    options.posix.closeFd(outbox)
    const control = this.#child.stdio[3]
    if (!(control instanceof Duplex)) {
      throw new UnavailableError('Cannot start the launcher: it has no control channel')
    }
    this.#control = control
    this.#control.on('error', () => undefined)
    this.#control.write(encodeWords(wordsOf(options)))
    this.#control.on('data', (octets: Buffer) => this.#read(octets.toString('utf8')))
    this.ended = new Promise((done) => {
      this.#child.on('error', (error) => done(this.#fail('start', 0, error.message)))
      this.#child.on('close', () => done(this.#end ?? this.#fail('launcher', 0, 'it ended early')))
    })
    void this.ended.then(() => {
      this.#gotSockets(undefined)
      this.#gotStart()
      options.posix.closeFd(inbox)
    })
  }

  get pid(): number {
    return this.#child.pid ?? 0
  }

  /** Resolves with the sockets, or with undefined if the launcher ended before it sent them. Call it once. */
  async sockets(): Promise<InnerSockets | undefined> {
    return await this.#sockets
  }

  /** Starts the command. Call this when policy is in force in the command's namespace. */
  go(): void {
    this.#going = true
    this.#control.write('go\n')
  }

  /** Sends a signal to the command. Before `go` it ends the launcher instead. */
  signal(number: number): void {
    if (this.#going) {
      this.#control.write(`signal ${number}\n`)
      return
    }
    this.#end ??= { kind: 'killed', signal: number }
    this.kill()
  }

  /** Continues the command after `onStopped`. `withTerminal`: the command receives the terminal's foreground again. */
  resume(withTerminal: boolean): void {
    this.#control.write(`continue ${withTerminal ? 1 : 0}\n`)
  }

  /** Ends the command and all its processes at once. */
  kill(): void {
    this.#child.kill('SIGKILL')
  }

  #read(text: string): void {
    const lines = (this.#text + text).split('\n')
    this.#text = lines.pop() ?? ''
    for (const line of lines) this.#take(line)
  }

  #take(line: string): void {
    const [word = '', first = '', second = '', ...rest] = line.split(' ')
    const number = Number(first)
    switch (word) {
      case 'sockets':
        this.#gotSockets(this.#receive())
        break
      case 'started':
        this.#gotStart()
        break
      case 'stopped':
        this.onStopped?.(number)
        break
      case 'exit':
        this.#end ??= { kind: 'exit', code: number }
        break
      case 'killed':
        this.#end ??= { kind: 'killed', signal: number }
        break
      case 'fail':
        this.#fail(first, Number(second), rest.join(' '))
        break
    }
  }

  #fail(step: string, errno: number, detail: string): LaunchEnd {
    return (this.#end ??= { kind: 'failed', step, errno, detail })
  }

  #receive(): InnerSockets | undefined {
    const found = this.#options.posix.receiveFds(this.#inbox)
    if (typeof found === 'number' || found.length < NETLINKS + 3) return undefined
    const listening = found.slice(0, -NETLINKS - 1)
    const [udp4 = -1, tcp4 = -1, udp6, tcp6] = listening
    const ipv6 =
      udp6 === undefined || tcp6 === undefined ? [] : [{ family: 6, udp: udp6, tcp: tcp6 } as const]
    return {
      listeners: [{ family: 4, udp: udp4, tcp: tcp4 }, ...ipv6],
      netlink: found.slice(-NETLINKS - 1, -1),
      links: found.at(-1) ?? -1,
    }
  }
}

/** Returns the options for the launcher, which reads them from its control channel (native/sandbox/options.h). */
function wordsOf({
  privileged,
  foreground,
  resolv,
  hidden,
  view,
  publish,
}: LaunchOptions): string[] {
  return [
    ...(privileged ? ['privileged'] : []),
    ...(foreground ? ['foreground'] : []),
    ...(view.isReadOnly ? ['read-only'] : []),
    ...(view.hasPrivateTmp ? ['private-tmp'] : []),
    ...['resolv', resolv],
    ...hidden.files.flatMap((path) => ['file', path]),
    ...hidden.folders.flatMap((path) => ['folder', path]),
    ...view.hidden.flatMap((path) => ['hide', path]),
    ...view.locked.flatMap((path) => ['lock', path]),
    ...publish.flatMap(({ address, port, inner }) => ['publish', `${address} ${port} ${inner}`]),
  ]
}

function encodeWords(words: readonly string[]): Buffer {
  const octets = Buffer.from(words.map((word) => `${word}\0`).join(''))
  return Buffer.concat([Buffer.from(`${octets.length}\n`), octets])
}

/** Returns the path of the launcher's program. Throws UnavailableError if the program was not built. */
export function launcherProgram(): string {
  const file = nativeFile('sandbox')
  if (existsSync(file)) return file
  throw new UnavailableError(
    `Cannot start a sandbox: its launcher is missing: ${whyMissing('apt-get install gcc libc6-dev')}`,
  )
}
