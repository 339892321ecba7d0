// The state folder as a port: only what is needed to append, to sync and to rename. Tests make one that fails or ends
// at any call, or that forgets what was not synced. Calls that may take long give promises; the two that do not,
// `create` and `appendNow`, reach the page cache and come back.

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
  write,
  statSync,
  writeSync,
} from 'node:fs'
import { open, rename, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { systemCodeOf } from '../../core/errors.ts'
import { makeFolder } from './make-folder.ts'

export interface Disk {
  /** Names of all files; throws when the folder can't be read, none when it isn't there. */
  names(): readonly string[]
  /** What is at a name now; undefined when nothing is. Throws when the folder can't be looked into. */
  mark(name: string): FileMark | undefined
  /** Octets of a file; throws, also when it is longer than `octetsMax`. */
  read(name: string, octetsMax: number): Uint8Array
  /** A new file; throws when there is one, or it can't be made. The folder is made when it is missing. */
  create(name: string): DiskFile
  rename(from: string, to: string): Promise<void>
  remove(name: string): Promise<void>
  /** Names of files reach the disk. */
  sync(): Promise<void>
}

/** What tells a file from any other one at its place. */
export interface FileMark {
  /** The same as long as it is the same file. */
  readonly id: string
  readonly octets: number
  /** Another one after every write. */
  readonly written: number
}

export interface DiskFile {
  /** Octets that were written, which may be fewer. Throws. */
  appendNow(octets: Uint8Array): number
  /** The same, later; `octets` must stay as they are until then. */
  append(octets: Uint8Array): Promise<number>
  /** What was appended reaches the disk. */
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

/** The same where names in the folder may change only when `mayWrite` does not throw. */
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

/** Octets of a file of the state, without a descriptor left open; throws when it is longer than `octetsMax`. */
export function readFile(path: string, octetsMax: number): Uint8Array {
  // A pipe would wait for a writer.
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
