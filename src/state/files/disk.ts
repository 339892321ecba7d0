// The state folder as a port: append, sync, rename, remove. Tests have a disk that fails or ends at any call, or forgets what was
// not synced. Slow calls return promises; `create` and `appendNow` only reach the page cache.

import {
  close,
  closeSync,
  constants,
  existsSync,
  fdatasync,
  fstatSync,
  fsync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  statSync,
  write,
  writeSync,
} from 'node:fs'
import { open, rename, unlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { systemCodeOf } from '../../core/errors.ts'

export interface Disk {
  /** Names of all files; none when the folder does not exist. Throws when the folder can not be read. */
  names(): readonly string[]
  /** The file with this name now, undefined for none. Throws when the folder can not be read. */
  mark(name: string): FileMark | undefined
  /** Octets of a file. Throws when it can not be read or is longer than `octetsMax`. */
  read(name: string, octetsMax: number): Uint8Array
  /** Creates a file, and the folder when it is missing. Throws when the file exists or can not be created. */
  create(name: string): DiskFile
  rename(from: string, to: string): Promise<void>
  remove(name: string): Promise<void>
  /** Syncs the names of files to the disk. */
  sync(): Promise<void>
}

/** Tells a file from another one of the same name. */
export interface FileMark {
  /** Equal as long as it is the same file. */
  readonly id: string
  readonly octets: number
  /** Differs after every write. */
  readonly written: number
}

export interface DiskFile {
  /** Returns the octets written, which may be fewer than given. Throws when the disk refuses. */
  appendNow(octets: Uint8Array): number
  /** As `appendNow`, without blocking; `octets` must not change until then. */
  append(octets: Uint8Array): Promise<number>
  /** Syncs what was appended to the disk. */
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

/** The same disk, but names in the folder change only while `mayWrite` does not throw. */
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

/** Octets of a file of the state. Throws when it is longer than `octetsMax`; closes its descriptor in any case. */
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
 * Whether a file that was written is still the one with its name. A removed file continues to take writes that no start would
 * find. A check costs one stat.
 */
export class InPlace {
  readonly name: string
  readonly #disk: Disk
  readonly #mark: FileMark | undefined

  /** The file has the name `now`, and will have `name`. */
  constructor(disk: Disk, name: string, now = name) {
    this.#disk = disk
    this.name = name
    this.#mark = lookAt(disk, now)
  }

  /** Whether it is the same file, with at least `octets`. */
  grows(octets: number): boolean {
    const now = this.#disk.mark(this.name)
    return now !== undefined && now.id === this.#mark?.id && now.octets >= octets
  }

  /** Whether it is the same file without a further write. */
  get rests(): boolean {
    const [before, now] = [this.#mark, this.#disk.mark(this.name)]
    return now !== undefined && now.id === before?.id && now.written === before.written
  }
}

function lookAt(disk: Disk, name: string): FileMark | undefined {
  try {
    return disk.mark(name)
  } catch {
    // Without a mark, the file counts as moved.
    return undefined
  }
}

/**
 * Makes a folder and the missing ones above it. Throws the kernel's reason: on a read-only disk, Node's `recursive` reports ENOENT
 * instead.
 */
export function makeFolder(path: string, mode?: number): void {
  try {
    mkdirSync(path, { recursive: true, mode })
  } catch (error) {
    throw systemCodeOf(error) === 'ENOENT' ? (reasonOf(path) ?? error) : error
  }
}

/** Why the topmost missing folder can not be made; undefined: it was made just now. */
function reasonOf(path: string): unknown {
  let missing = path
  while (!existsSync(dirname(missing))) missing = dirname(missing)
  try {
    mkdirSync(missing)
    return undefined
  } catch (error) {
    return error
  }
}
