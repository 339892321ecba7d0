// This file reads and writes the node's folders of network configurations and of plugins. A file is replaced in one step, so a container
// runtime never reads half a file. The temporary names end with `.new`, which runtimes do not read.

import {
  chmodSync,
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { messageOf, UnavailableError } from '../../core/errors.ts'
import { nativeFile, whyMissing } from '../../native/native-files.ts'
import { PLUGIN, type NetworkFile } from './chain.ts'

/** Container runtimes use the first name in the order of octets. Network plugins usually begin theirs with two digits. */
export const OWN_FILE = '0-namegate.conflist'
const READ_BY_RUNTIMES = /\.(?:conf|conflist|json)$/
const CONFIG_MODE = 0o644
const PROGRAM_MODE = 0o755

/** Returns the file that a container runtime would use without namegate. Throws UnavailableError. */
export function fileInUse(folder: string): NetworkFile {
  const names = attempt(`read ${folder}`, () => readdirSync(folder))
  const [first] = names.filter((name) => READ_BY_RUNTIMES.test(name) && name !== OWN_FILE).sort()
  if (first === undefined) {
    throw new UnavailableError(
      `${folder} has no network configuration (*.conflist, *.conf, *.json): install the network plugin of the cluster first`,
    )
  }
  const path = join(folder, first)
  if (first < OWN_FILE) {
    throw new UnavailableError(
      `container runtimes would use ${path} before ${OWN_FILE}: rename it, so that it begins with a letter or two digits`,
    )
  }
  return { path, text: attempt(`read ${path}`, () => readFileSync(path, 'utf8')) }
}

export function writeChain(folder: string, text: string): void {
  replace(join(folder, OWN_FILE), Buffer.from(text), CONFIG_MODE)
}

export function hasChain(folder: string, text: string): boolean {
  const path = join(folder, OWN_FILE)
  return existsSync(path) && readFileSync(path, 'utf8') === text
}

export function writeProgram(folder: string): void {
  replace(join(folder, PLUGIN), program(), PROGRAM_MODE)
}

export function hasProgram(folder: string): boolean {
  const path = join(folder, PLUGIN)
  return existsSync(path) && readFileSync(path).equals(program())
}

/** Removes a file, and what an interrupted installation left of it. Returns true if the file was there. */
export function remove(folder: string, name: string): boolean {
  const path = join(folder, name)
  return attempt(`remove ${path}`, () => {
    const wasThere = existsSync(path)
    rmSync(path, { force: true })
    rmSync(temporary(path), { force: true })
    return wasThere
  })
}

function program(): Buffer {
  const path = nativeFile(PLUGIN)
  if (!existsSync(path)) {
    throw new UnavailableError(`${path} is missing: ${whyMissing('apt-get install gcc libc6-dev')}`)
  }
  return readFileSync(path)
}

function replace(path: string, octets: Buffer, mode: number): void {
  const next = temporary(path)
  attempt(`write ${path}`, () => {
    writeFileSync(next, octets)
    chmodSync(next, mode)
    sync(next)
    renameSync(next, path)
    sync(dirname(path))
  })
}

function temporary(path: string): string {
  return `${path}.new`
}

function sync(path: string): void {
  const fd = openSync(path, 'r')
  fsyncSync(fd)
  closeSync(fd)
}

function attempt<T>(what: string, run: () => T): T {
  try {
    return run()
  } catch (error) {
    throw new UnavailableError(`Cannot ${what}: ${messageOf(error)}`)
  }
}
