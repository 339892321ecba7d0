// ResourceShards saves the external resources of the admin API in the state folder, in the files resources/00.json to ff.json. The
// hash of the name selects the file, its shard. So a change writes a few hundred resources at most, and a broken file loses no more than
// that. Changes during a write wait for the next write. Refused writes are repeated, and missing files are written again. The lock of the
// folder makes sure that one process writes.
//
//   { "version": 1, "resources": [ one a line ] }

import { type Dirent, readdirSync, readFileSync } from 'node:fs'
import { open, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Clock } from '../core/clock.ts'
import { messageOf, systemCodeOf } from '../core/errors.ts'
import { isMapping } from '../documents/source-document.ts'
import { makeFolder } from '../native/make-folder.ts'
import { RetryTimer } from './faults.ts'

const SHARDS = 256
const FILE = /^[0-9a-f]{2}\.json$/

interface Shard {
  /** By name of the resource: the line of the file. */
  readonly lines: Map<string, string>
  /** Grows with every change. */
  version: number
  /** The version that is on the disk. */
  saved: number
  /** The write in progress, if any. */
  saving: Promise<void> | undefined
}

export interface ResourceShardsOptions {
  readonly folder: string
  readonly clock: Clock
  /** Throws while another process owns the folder. */
  readonly mayWrite?: () => void
  /** Called for each file that cannot be used, with the reason. The resources of the file are lost. */
  readonly onDamage: (fault: string) => void
  /** Called after every write that the disk refused, with the reason. */
  readonly onFault: (reason: string) => void
}

export class ResourceShards {
  readonly #options: ResourceShardsOptions
  readonly #shards = new Map<number, Shard>()
  readonly #again: RetryTimer
  /** Numbers of the shards whose last write the disk refused. */
  readonly #refused = new Set<number>()
  /** By number of the shard: why its file could not be used. */
  readonly #damage = new Map<number, string>()
  /** Why the folder could not be read at the start. */
  #folderDamage: string | undefined

  constructor(options: ResourceShardsOptions) {
    this.#options = options
    this.#again = new RetryTimer(options.clock, () => this.#writeAgain())
  }

  /** True if a restart would bring back other resources than those in force. */
  get isFailing(): boolean {
    return this.#refused.size > 0
  }

  /** Why files could not be used, for each file until it is written again. */
  get damage(): readonly string[] {
    const ofFolder = this.#folderDamage === undefined ? [] : [this.#folderDamage]
    return [...ofFolder, ...this.#damage.values()]
  }

  /** Reads all resources and returns them as JSON values. Call once, before `keep`. */
  read(): readonly unknown[] {
    const { folder, onDamage } = this.#options
    let names: readonly string[] = []
    try {
      names = entriesIn(folder).map(({ name }) => name)
    } catch (error) {
      this.#folderDamage = `${folder}: cannot read: ${messageOf(error)}`
      onDamage(this.#folderDamage)
    }
    const files = names.filter((name) => FILE.test(name)).sort()
    return files.flatMap((name) => this.#readFile(name))
  }

  /** Stores or removes the line of a name. Resolves when this is on the disk. Rejects if the disk refuses the first write. */
  async keep(name: string, line: string | undefined): Promise<void> {
    const number = shardOf(name)
    const shard = this.#shard(number)
    if (shard.lines.get(name) !== line) {
      if (line === undefined) shard.lines.delete(name)
      else shard.lines.set(name, line)
      shard.version++
    }
    await this.#saved(number, shard)
  }

  /** Writes all shards again after the files were lost. */
  keepAgain(): void {
    for (const [number, shard] of this.#shards) this.#writeAnew(number, shard)
  }

  /** Reads the folder once, and writes files again that are missing or cannot be checked. Returns the paths of these files. */
  look(): readonly string[] {
    const { folder } = this.#options
    const resting = [...this.#shards].filter(([, shard]) => isOnDisk(shard))
    if (resting.length === 0 && this.#folderDamage === undefined) return []
    const there = this.#filesThere()
    const gone = resting.filter(([number]) => !there.has(fileOf(number)))
    for (const [number, shard] of gone) this.#writeAnew(number, shard)
    return gone.map(([number]) => join(folder, fileOf(number)))
  }

  /** Writes the remaining changes once more, after the writes in progress. */
  async close(): Promise<void> {
    const last = [...this.#shards].map(async ([number, shard]) => {
      await shard.saving?.catch(() => undefined)
      if (shard.saved < shard.version) await this.#saving(number, shard)
    })
    await Promise.allSettled(last)
    this.#again.cancel()
  }

  /** Returns the names of the files in the folder. Returns none if the folder cannot be read, so that every file is written again. */
  #filesThere(): ReadonlySet<string> {
    try {
      const entries = entriesIn(this.#options.folder)
      const names = entries.filter((entry) => entry.isFile()).map(({ name }) => name)
      // Without a file there is also no file that could not be read.
      if (!names.some((name) => FILE.test(name))) this.#folderDamage = undefined
      return new Set(names)
    } catch {
      return new Set()
    }
  }

  #readFile(file: string): readonly unknown[] {
    const path = join(this.#options.folder, file)
    const values = readResources(path)
    if (values === undefined) {
      const fault = `${path}: found no resources that this version understands`
      this.#damage.set(Number.parseInt(file, 16), fault)
      this.#options.onDamage(fault)
      return []
    }
    for (const value of values) {
      const name = isMapping(value) ? value['name'] : undefined
      if (typeof name !== 'string') continue
      this.#shard(shardOf(name)).lines.set(name, JSON.stringify(value))
    }
    return values
  }

  #writeAgain(): void {
    // `#saving` reports a write that is refused again.
    for (const number of this.#refused) {
      this.#saving(number, this.#shard(number)).catch(() => undefined)
    }
  }

  #writeAnew(number: number, shard: Shard): void {
    if (shard.lines.size === 0) return
    shard.version++
    // `#saving` reports a refused write and has it repeated.
    this.#saved(number, shard).catch(() => undefined)
  }

  #shard(number: number): Shard {
    const known = this.#shards.get(number)
    if (known !== undefined) return known
    const shard: Shard = { lines: new Map(), version: 0, saved: 0, saving: undefined }
    this.#shards.set(number, shard)
    return shard
  }

  /** Resolves when the present version of the shard is on the disk. */
  async #saved(number: number, shard: Shard): Promise<void> {
    const wanted = shard.version
    while (shard.saved < wanted) await this.#saving(number, shard)
  }

  /** Joins the write of the shard in progress, or begins one. A shard has at most one write at a time. */
  async #saving(number: number, shard: Shard): Promise<void> {
    shard.saving ??= this.#save(number, shard).finally(() => (shard.saving = undefined))
    try {
      await shard.saving
    } catch (error) {
      this.#refused.add(number)
      this.#options.onFault(messageOf(error))
      this.#again.later()
      throw error
    }
  }

  async #save(number: number, shard: Shard): Promise<void> {
    const { folder, mayWrite } = this.#options
    const { version, lines } = shard
    const path = join(folder, fileOf(number))
    mayWrite?.()
    makeFolder(folder, 0o700)
    await writeResources(path, [...lines.values()])
    shard.saved = version
    this.#refused.delete(number)
    this.#damage.delete(number)
    this.#folderDamage = undefined
  }
}

/** Returns true if the shard's file is on the disk and no write is in progress. */
function isOnDisk({ lines, version, saved, saving }: Shard): boolean {
  return lines.size > 0 && saved === version && saving === undefined
}

function fileOf(number: number): string {
  return `${number.toString(16).padStart(2, '0')}.json`
}

/** Returns the number of the shard of a name: FNV-1a of the name's UTF-16 units, folded to 8 bits. */
function shardOf(name: string): number {
  let hash = 0x811c9dc5
  for (let i = 0; i < name.length; i++) hash = Math.imul(hash ^ name.charCodeAt(i), 0x01000193)
  return ((hash >>> 16) ^ hash) & (SHARDS - 1)
}

const VERSION = 1

/** Returns the entries of a folder, and none if the folder does not exist. Throws if the folder cannot be read. */
function entriesIn(folder: string): readonly Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true })
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return []
    throw error
  }
}

/** Returns the resources of a file of this version, and undefined for any other file. */
function readResources(path: string): readonly unknown[] | undefined {
  try {
    const value: unknown = JSON.parse(readFileSync(path, 'utf8'))
    if (!isMapping(value) || value['version'] !== VERSION) return undefined
    const { resources } = value
    return Array.isArray(resources) ? resources : undefined
  } catch {
    return undefined
  }
}

/** Writes a file under another name, syncs and renames it. Without resources, removes the file. Resolves when this is on the disk. */
async function writeResources(path: string, lines: readonly string[]): Promise<void> {
  if (lines.length === 0) await rm(path, { force: true })
  else {
    const text = `{"version":${VERSION},"resources":[\n${lines.join(',\n')}\n]}\n`
    await writeSynced(`${path}.new`, text)
    await rename(`${path}.new`, path)
  }
  await syncFolder(dirname(path))
}

async function writeSynced(path: string, text: string): Promise<void> {
  const file = await open(path, 'w', 0o600)
  try {
    await file.writeFile(text)
    await file.sync()
  } finally {
    await file.close()
  }
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r')
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}
