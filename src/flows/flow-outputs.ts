// Writes flows to a stream such as standard output, or to the system's log. FlowOutput is the interface of every output; flow-files.ts
// has the output to files. An output takes lines at its own pace and never blocks. FlowKeeper gives an output only as many lines as
// the output has room for.

import { writeSync } from 'node:fs'
import type { Writable } from 'node:stream'
import type { Clock } from '../core/clock.ts'
import { systemCodeOf } from '../core/errors.ts'
import { errnoName, loadPosix } from '../native/native.ts'
import type { Log } from '../telemetry/log.ts'

export type FlowOutputName = 'file' | 'stdout' | 'syslog'

/** How many octets can wait for a slow reader or receiver. */
const OCTETS_MAX = 262_144
const STOP_MS = 1_000
export const SYSLOG_SOCKET = '/dev/log'
/** Facility daemon (3), severity informational (6). */
const SYSLOG_PRIORITY = 3 * 8 + 6

export interface FlowOutput {
  readonly name: FlowOutputName
  /** How many octets the output can take now. */
  readonly room: number
  /** Takes whole lines, each with its line feed, of at most `room` octets. */
  write(lines: string): void
  /** Tries again to write what failed. FlowKeeper calls `tick` about once a second. */
  tick(): void
  /** Waits until the lines that the output took are written, a second at most. */
  stop(): Promise<void>
}

/** Writes to a stream. When the reader has closed the stream, the output logs this fact once and takes no more lines. */
export class StreamOutput implements FlowOutput {
  readonly name = 'stdout'
  readonly #stream: Writable
  readonly #clock: Clock
  #isGone = false

  constructor(stream: Writable, clock: Clock, log: Log) {
    this.#stream = stream
    this.#clock = clock
    stream.on('error', (error) => {
      if (!this.#isGone)
        log.warn(
          { reason: error.message },
          'the reader of flows has gone: namegate writes no more flows to this output',
        )
      this.#isGone = true
    })
  }

  get room(): number {
    return this.#isGone ? 0 : Math.max(0, OCTETS_MAX - this.#stream.writableLength)
  }

  write(lines: string): void {
    this.#stream.write(lines)
  }

  tick(): void {
    // A stream needs no second try.
  }

  async stop(): Promise<void> {
    if (this.#isGone || this.#stream.writableLength === 0) return
    const written = new Promise<void>((resolve) => this.#stream.write('', () => resolve()))
    const late = new Promise<void>((resolve) => this.#clock.after(STOP_MS, resolve))
    await Promise.race([written, late])
  }
}

/**
 * Sends each line as one datagram to /dev/log, in the form that local senders use: `<PRI>TAG[PID]: TEXT` (RFC 3164 4.1). The receiver
 * adds time and host. Lines for which the receiver has no room wait. After a restart of the receiver, the next line opens a new socket.
 */
export class SyslogOutput implements FlowOutput {
  readonly name = 'syslog'
  readonly #path: string
  readonly #log: Log
  #fd = -1
  #pending: string[] = []
  #pendingOctets = 0

  constructor(log: Log, path = SYSLOG_SOCKET) {
    this.#log = log
    this.#path = path
  }

  get room(): number {
    return OCTETS_MAX - this.#pendingOctets
  }

  write(lines: string): void {
    this.#pending.push(...lines.split('\n').filter((line) => line !== ''))
    this.#pendingOctets += Buffer.byteLength(lines)
    this.#send()
  }

  tick(): void {
    if (this.#pending.length > 0) this.#send()
  }

  async stop(): Promise<void> {
    this.#send()
    this.#close()
    return await Promise.resolve()
  }

  #send(): void {
    if (!this.#open()) return
    let sent = 0
    try {
      for (const line of this.#pending) {
        writeSync(this.#fd, `<${SYSLOG_PRIORITY}>namegate[${process.pid}]: ${line}`)
        sent++
      }
    } catch (error) {
      const code = systemCodeOf(error) ?? 'unknown'
      if (code !== 'EAGAIN' && code !== 'ENOBUFS') {
        this.#logFault(code)
        this.#close()
      }
    }
    this.#pending = this.#pending.slice(sent)
    this.#pendingOctets = this.#pending.reduce((sum, line) => sum + Buffer.byteLength(line) + 1, 0)
  }

  #open(): boolean {
    if (this.#fd >= 0) return true
    const fd = loadPosix().datagramsTo(this.#path)
    if (fd < 0) this.#logFault(errnoName(-fd))
    else this.#fd = fd
    return fd >= 0
  }

  #logFault(code: string): void {
    const fields = { path: this.#path, reason: code }
    this.#log.limited(`flows to syslog: ${code}`, fields, 'flows cannot be sent to syslog')
  }

  #close(): void {
    if (this.#fd >= 0) loadPosix().closeFd(this.#fd)
    this.#fd = -1
  }
}
