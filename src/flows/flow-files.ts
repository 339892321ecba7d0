// Keeps flows on disk, in files `flows-0000000001.jsonl` and so on in one folder. Lines are appended to the newest file. A file ends at a
// sixteenth of `max-size` (64 KiB to 16 MiB), or after an eighth of `keep`. Then a new file begins. Before a write would exceed `max-size`,
// the oldest files are removed whole. Writes are asynchronous, one at a time. During a write, FlowFiles takes at most one more batch.
//
// A full or read-only disk is logged once a minute for each cause. The batch stays in memory and is written with the next batch; the rest
// of the process does not wait. A crash can cut short the last line of a file; the next process begins a new file. Flows are a record, not
// state, so nothing is synced. Ages are measured on the monotonic clock. For a file of an earlier process, the wall clock gives the age.

import { mkdir, open, stat, unlink, type FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock } from '../core/clock.ts'
import { messageOf, systemCodeOf } from '../core/errors.ts'
import type { Log } from '../telemetry/log.ts'
import type { FlowOutput } from './flow-outputs.ts'
import { listFlowFiles, flowFileName, type FlowFile } from './flow-folder.ts'

/** How many octets can wait for a write. */
const BATCH_MAX = 262_144
const FILE_MIN = 65_536
const FILE_MAX = 16_777_216
const FILES = 16
/** Bounds the number of files, because a daemon that restarts again and again begins a file with each start. */
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
  /** Files that were removed because of `max-size` or COUNT_MAX, and files that were older than `keep`. */
  removedBySize: number
  removedByAge: number
  /** Steps that failed to list, remove or write files. */
  failed: number
}

interface AgingFile extends Pick<FlowFile, 'name' | 'number' | 'octets'> {
  /** Time of the last write, on the monotonic clock in milliseconds. */
  changed: number
}

export class FlowFiles implements FlowOutput {
  readonly name = 'file'
  readonly counters: FlowFileCounters = {
    removedBySize: 0,
    removedByAge: 0,
    failed: 0,
  }
  /** The size of all files together. */
  octets = 0
  readonly #options: FlowFilesOptions
  readonly #fileMax: number
  readonly #batchMax: number
  /** The files, oldest first. If `#handle` is set, it writes to the last of them. Undefined: the next step lists the folder. */
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

  /** Tries again to write what failed, and removes files that are older than `keep`. */
  tick(): void {
    this.#go()
  }

  async stop(): Promise<void> {
    const { clock } = this.#options
    const late = new Promise<void>((resolve) => clock.after(STOP_MS, resolve))
    await Promise.race([this.settled(), late])
    await Promise.race([this.#handle?.close().catch(() => undefined), late])
  }

  /** Resolves when everything that was taken is written or has failed. */
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
      // Makes the next step list the folder.
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
      // Removes the part that was written, because the next try writes the whole batch again.
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

  /** Returns the file to which `octets` more octets can be written. Removes old files to make room. */
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
    // The list is read again, because another daemon writes files to this folder during a take-over.
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

  /** Closes the newest file, so that the next batch begins a new file. */
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
