// Flows on disk: `flows-0000000001.jsonl` and so on in one folder, the newest being appended to. A file ends at a sixteenth of
// `max-size` or an eighth of `keep`; the oldest go whole, before their room is needed. Octets are written asynchronously, one write at
// a time; while one is under way at most a batch more is taken.
//
// A disk that is full or read-only is told once by cause: the batch stays and is tried again with the next one, and nothing else
// of the process waits. What a crash cuts short is the last line of a file, which is never appended to again. Nothing is synced: flows
// are a record, not state. Ages go by the clock of the process, which nobody sets; only how old a file is that was there before is
// read off the wall clock, at least nothing.

import { mkdir, open, stat, unlink, type FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock } from '../core/clock.ts'
import { messageOf, systemCodeOf } from '../core/errors.ts'
import type { Log } from '../telemetry/log.ts'
import type { FlowOutput } from './flow-output.ts'
import { listFlowFiles, flowFileName, type FlowFile } from './flow-folder.ts'

/** Octets taken before they are written. */
const BATCH_MAX = 262_144
const FILE_MIN = 65_536
const FILE_MAX = 16_777_216
const FILES = 16
/** Files of one line each, from a daemon that is started again and again, count too. */
const COUNT_MAX = 1_024
const AGES = 8
const STOP_MS = 1_000

export interface FlowFilesOptions {
  readonly folder: string
  readonly clock: Clock
  readonly log: Log
  readonly keepMs: number
  readonly maxOctets: number
}

export interface FlowFileCounters {
  /** Files that went because of size, and because of age. */
  removedBySize: number
  removedByAge: number
  /** Writes that failed. */
  failed: number
}

interface AgingFile extends Pick<FlowFile, 'name' | 'number' | 'octets'> {
  /** When it was last written to, on the clock of the process. */
  changed: number
}

export class FlowFiles implements FlowOutput {
  readonly name = 'file'
  readonly counters: FlowFileCounters = {
    removedBySize: 0,
    removedByAge: 0,
    failed: 0,
  }
  /** Octets of all files. */
  octets = 0
  readonly #options: FlowFilesOptions
  readonly #fileMax: number
  readonly #batchMax: number
  /** Oldest first; the last is the one that is written to when `#handle` is there. */
  #files: AgingFile[] | undefined
  #handle: FileHandle | undefined
  #begun = 0
  #pending = ''
  #pendingOctets = 0
  #work: Promise<void> | undefined

  constructor(options: FlowFilesOptions) {
    this.#options = options
    this.#fileMax = Math.min(Math.max(options.maxOctets / FILES, FILE_MIN), FILE_MAX)
    this.#batchMax = Math.min(this.#fileMax, BATCH_MAX)
  }

  get maxOctets(): number {
    return this.#options.maxOctets
  }

  get room(): number {
    return this.#batchMax - this.#pendingOctets
  }

  write(lines: string): void {
    this.#pending += lines
    this.#pendingOctets += Buffer.byteLength(lines)
    this.#go()
  }

  /** Tries again what failed, and removes what is too old. */
  tick(): void {
    this.#go()
  }

  async stop(): Promise<void> {
    const { clock } = this.#options
    const late = new Promise<void>((resolve) => clock.after(STOP_MS, resolve))
    await Promise.race([this.settled(), late])
    await Promise.race([this.#handle?.close().catch(() => undefined), late])
  }

  /** When everything taken so far is written or has failed. */
  async settled(): Promise<void> {
    while (this.#work !== undefined) await this.#work
  }

  #go(): void {
    this.#work ??= this.#step().finally(() => {
      this.#work = undefined
    })
  }

  async #step(): Promise<void> {
    const { log, folder } = this.#options
    try {
      this.#files ??= await this.#list()
      await this.#removeOld()
      while (this.#pending !== '') await this.#writeBatch()
    } catch (error) {
      this.counters.failed++
      const reason = messageOf(error)
      log.limited(
        `flow files: ${systemCodeOf(error) ?? 'unknown'}`,
        { path: folder, reason },
        'flows cannot be kept',
      )
      await this.#leaveFile()
      // Whatever is there now is looked at anew.
      this.#files = undefined
    }
  }

  async #list(): Promise<AgingFile[]> {
    const { folder, clock } = this.#options
    await mkdir(folder, { recursive: true })
    const known = new Map(this.#files?.map((file) => [file.name, file]))
    const files = (await listFlowFiles(folder)).map((file) => {
      const age = Math.max(0, clock.wall() - file.written)
      return known.get(file.name) ?? { ...file, changed: clock.now() - age }
    })
    this.octets = files.reduce((sum, { octets }) => sum + octets, 0)
    return files
  }

  async #writeBatch(): Promise<void> {
    const text = this.#pending
    const octets = this.#pendingOctets
    const file = await this.#fileFor(octets)
    const handle = this.#handle
    if (handle === undefined) return
    const data = Buffer.from(text)
    try {
      for (let at = 0; at < data.length;) {
        at += (await handle.write(data, at, data.length - at, file.octets + at)).bytesWritten
      }
    } catch (error) {
      // Half a batch would stand twice when it is tried again.
      await handle.truncate(file.octets).catch(() => undefined)
      if (file.octets === 0) await unlink(join(this.#options.folder, file.name))
      throw error
    }
    file.octets += octets
    file.changed = this.#options.clock.now()
    this.octets += octets
    this.#pending = this.#pending.slice(text.length)
    this.#pendingOctets -= octets
  }

  /** The file that takes so many octets more, room made for them. */
  async #fileFor(octets: number): Promise<AgingFile> {
    const { folder, clock, keepMs, maxOctets } = this.#options
    let file = this.#handle === undefined ? undefined : this.#files?.at(-1)
    if (file !== undefined) {
      const isFull = file.octets + octets > this.#fileMax
      const isOld = clock.now() - this.#begun > keepMs / AGES
      if (isFull || isOld || !(await exists(join(folder, file.name)))) {
        await this.#leaveFile()
        file = undefined
      }
    }
    // A daemon that takes over from this one, or the other way round, has files of its own in here.
    if (file === undefined) this.#files = await this.#list()
    const files = this.#files ?? []
    while (files.length > 0 && (this.octets + octets > maxOctets || files.length >= COUNT_MAX)) {
      const [oldest] = files
      if (oldest === undefined || oldest === file) break
      await this.#remove(files, oldest)
      this.counters.removedBySize++
    }
    if (file !== undefined) return file
    const number = (files.at(-1)?.number ?? 0) + 1
    const name = flowFileName(number)
    this.#handle = await open(join(folder, name), 'wx', 0o600)
    this.#begun = clock.now()
    const made = { name, number, octets: 0, changed: this.#begun }
    files.push(made)
    return made
  }

  async #removeOld(): Promise<void> {
    const { clock, keepMs } = this.#options
    const files = this.#files ?? []
    for (let [oldest] = files; oldest !== undefined; [oldest] = files) {
      if (clock.now() - oldest.changed <= keepMs) return
      if (files.length === 1) await this.#leaveFile()
      await this.#remove(files, oldest)
      this.counters.removedByAge++
    }
  }

  async #remove(files: AgingFile[], file: AgingFile): Promise<void> {
    await unlink(join(this.#options.folder, file.name)).catch((error: unknown) => {
      if (systemCodeOf(error) !== 'ENOENT') throw error
    })
    files.shift()
    this.octets -= file.octets
  }

  /** The next batch begins a new file. */
  async #leaveFile(): Promise<void> {
    const handle = this.#handle
    this.#handle = undefined
    await handle?.close().catch(() => undefined)
  }
}

async function exists(path: string): Promise<boolean> {
  return await stat(path).then(
    () => true,
    () => false,
  )
}
