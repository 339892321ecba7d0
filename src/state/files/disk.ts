// This file has the port to the disk of the state folder: append, sync, rename, remove. Tests have a disk that fails or ends at any call,
// or loses everything that was not synced. Slow calls return promises. `create` and `appendNow` write only to the page cache.

import {
  close,
  closeSync,
  constants,
  fdatasync,
  fstatSync,
  fsync,
  openSync,
  readdirSync,
  readFileSync,
  statSync,
  write,
  writeSync,
} from 'node:fs'
import { open, rename, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { makeFolder } from '../../native/make-folder.ts'
import { systemCodeOf } from '../../core/errors.ts'

export interface Disk {
  /** Returns the names of all files, and none if the folder does not exist. Throws if the folder cannot be read. */
  names(): readonly string[]
  /** Returns the mark of the file that has this name now, or undefined if there is none. Throws if the folder cannot be read. */
  mark(name: string): FileMark | undefined
  /** Returns the content of a file. Throws if the file cannot be read or has more than `octetsMax` octets. */
  read(name: string, octetsMax: number): Uint8Array
  /** Creates a file, and a missing folder. Throws if the file exists or cannot be created. */
  create(name: string): DiskFile
  rename(from: string, to: string): Promise<void>
  remove(name: string): Promise<void>
  /** Syncs the names of files to the disk. */
  sync(): Promise<void>
}

/** Tells a file from another one of the same name. */
export interface FileMark {
  /** Device and inode of the file. They are equal as long as it is the same file. */
  readonly id: string
  readonly octets: number
  /** Time of the last write, which differs after every write. */
  readonly written: number
}

export interface DiskFile {
  /** Appends octets. Returns how many were written, which can be fewer than given. Throws if the disk refuses. */
  appendNow(octets: Uint8Array): number
  /** Does the same as `appendNow` without blocking. `octets` must not change before the promise resolves or rejects. */
  append(octets: Uint8Array): Promise<number>
  /** Syncs the appended octets to the disk. */
  sync(): Promise<void>
  close(): Promise<void>
}

const CREATE = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_EXCL
const writeLater = promisify(write)
const closeLater = promisify(close)
const dataSyncLater = promisify(fdatasync)
const syncLater = promisify(fsync)

export function openDisk(folder: string): Disk {
  return {
    names: () => namesIn(folder),
    mark: (name) => markOf(join(folder, name)),
    read: (name, octetsMax) => readFile(join(folder, name), octetsMax),
    create(name) {
      makeFolder(folder, 0o700)
      return appender(openSync(join(folder, name), CREATE, 0o600))
    },
    rename: async (from, to) => await rename(join(folder, from), join(folder, to)),
    remove: async (name) => await unlink(join(folder, name)),
    async sync() {
      const handle = await open(folder, 'r')
      try {
        await syncLater(handle.fd)
      } finally {
        await handle.close()
      }
    },
  }
}

/** Returns the disk with a check: before a name in the folder changes, `mayWrite` is called and can throw. */
export function guardedDisk(disk: Disk, mayWrite: () => void): Disk {
  return {
    ...disk,
    create(name) {
      mayWrite()
      return disk.create(name)
    },
    async rename(from, to) {
      mayWrite()
      await disk.rename(from, to)
    },
    async remove(name) {
      mayWrite()
      await disk.remove(name)
    },
  }
}

/** Returns the content of a regular file. Throws if it has more than `octetsMax` octets. Always closes its descriptor. */
export function readFile(path: string, octetsMax: number): Uint8Array {
  // Without O_NONBLOCK, a pipe would wait for a writer.
  const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  try {
    const status = fstatSync(fd)
    if (!status.isFile()) throw new Error('it is no regular file')
    const { size } = status
    if (size > octetsMax) throw new Error(`found ${size} octets, expected at most ${octetsMax}`)
    return readFileSync(fd)
  } finally {
    closeSync(fd)
  }
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder)
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return []
    throw error
  }
}

function markOf(path: string): FileMark | undefined {
  const status = statSync(path, { throwIfNoEntry: false })
  if (status === undefined) return undefined
  const { dev, ino, size, mtimeMs } = status
  return { id: `${dev}:${ino}`, octets: size, written: mtimeMs }
}

function appender(fd: number): DiskFile {
  return {
    appendNow: (octets) => writeSync(fd, octets),
    append: async (octets) => (await writeLater(fd, octets)).bytesWritten,
    sync: async () => await dataSyncLater(fd),
    close: async () => await closeLater(fd),
  }
}

/**
 * Checks that a written file is still the file that has its name. A removed file still takes writes, which no start would find. A check
 * costs one stat.
 */
export class InPlace {
  readonly name: string
  readonly #disk: Disk
  readonly #mark: FileMark | undefined

  /** `now`: the present name of the file. `name`: the name that it will have at the checks. */
  constructor(disk: Disk, name: string, now = name) {
    this.#disk = disk
    this.name = name
    this.#mark = lookAt(disk, now)
  }

  /** Returns true if the name still belongs to the same file, and the file has at least `octets` octets. */
  grows(octets: number): boolean {
    const now = this.#disk.mark(this.name)
    return now !== undefined && now.id === this.#mark?.id && now.octets >= octets
  }

  /** True if the name still belongs to the same file, and nothing was written to the file since. */
  get rests(): boolean {
    const [before, now] = [this.#mark, this.#disk.mark(this.name)]
    return now !== undefined && now.id === before?.id && now.written === before.written
  }
}

function lookAt(disk: Disk, name: string): FileMark | undefined {
  try {
    return disk.mark(name)
  } catch {
    // Without a mark, `grows` and `rests` are false.
    return undefined
  }
}
