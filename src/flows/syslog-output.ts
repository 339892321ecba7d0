// Writes lines of flows to the system's log: one datagram a line to /dev/log, in the form of local senders (`<PRI>TAG[PID]: TEXT`,
// RFC 3164 4.1 without time and host, which the receiver adds). A send never waits: a line that the receiver has no room for is
// refused and counted. The socket is opened again after the receiver restarted.

import { writeSync } from 'node:fs'
import { systemCodeOf } from '../core/errors.ts'
import { errnoName, loadPosix } from '../native/native.ts'
import type { Log } from '../telemetry/log.ts'
import type { FlowOutput } from './flow-output.ts'

export const SYSLOG_SOCKET = '/dev/log'
/** Facility daemon (3), severity informational (6). */
const PRIORITY = 3 * 8 + 6
/** Lines that wait for a receiver without room. */
const PENDING_MAX = 262_144

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
    return PENDING_MAX - this.#pendingOctets
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
        writeSync(this.#fd, `<${PRIORITY}>namegate[${process.pid}]: ${line}`)
        sent++
      }
    } catch (error) {
      const code = systemCodeOf(error) ?? 'unknown'
      if (code !== 'EAGAIN' && code !== 'ENOBUFS') {
        this.#tell(code)
        this.#close()
      }
    }
    this.#pending = this.#pending.slice(sent)
    this.#pendingOctets = this.#pending.reduce((sum, line) => sum + Buffer.byteLength(line) + 1, 0)
  }

  #open(): boolean {
    if (this.#fd >= 0) return true
    const fd = loadPosix().datagramsTo(this.#path)
    if (fd < 0) this.#tell(errnoName(-fd))
    else this.#fd = fd
    return fd >= 0
  }

  #tell(code: string): void {
    const fields = { path: this.#path, reason: code }
    this.#log.limited(`flows to syslog: ${code}`, fields, 'flows cannot be sent to syslog')
  }

  #close(): void {
    if (this.#fd >= 0) loadPosix().closeFd(this.#fd)
    this.#fd = -1
  }
}
