// External resources that the admin API gave, kept in the state folder: resources/00.json to ff.json, each with the
// resources whose names have its hash, so that keeping one costs the writing of a few hundred at most, and a broken file
// loses no more. A file is written beside, synced, renamed, and the folder synced: a crash leaves the old one or the new
// one. Changes that come while a file is being written go together with the next writing, and what the disk refused is
// written again until it takes it. One process at a time (the lock of the state folder).
//
//   { "version": 1, "resources": [ one a line ] }

import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { open, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock } from '../core/clock.ts'
import { isMapping } from '../core/source-document.ts'
import { makeFolder } from './make-folder.ts'
import { WriteAgain } from './write-again.ts'

const VERSION = 1
const SHARDS = 256
const FILE = /^[0-9a-f]{2}\.json$/

interface Shard {
  /** Lines by name. */
  readonly lines: Map<string, string>
  /** Grows with every change. */
  version: number
  /** The version that the disk has. */
  saved: number
  saving: Promise<void> | undefined
}

export interface ResourceShardsOptions {
  readonly folder: string
  readonly clock: Clock
  /** Throws as long as the folder is not ours to write. */
  readonly mayWrite?: () => void
  /** Told of files that nobody can read: what they had is not known any more. */
  readonly onDamage: (fault: string) => void
  /** The disk refused some: the reason. Told at every try. */
  readonly onFault: (reason: string) => void
}

export class ResourceShards {
  readonly #to: ResourceShardsOptions
  readonly #shards = new Map<number, Shard>()
  readonly #again: WriteAgain
  /** Shards that the disk refused. */
  readonly #refused = new Set<number>()
  /** What is wrong with a file, by number of the shard. */
  readonly #damage = new Map<number, string>()

  constructor(options: ResourceShardsOptions) {
    this.#to = options
    this.#again = new WriteAgain(options.clock, () => this.#writeAgain())
  }

  /** Whether a restart would bring back other resources than those in force. */
  get isFailing(): boolean {
    return this.#refused.size > 0
  }

  /** Why files were passed over, each until it is written again. */
  get damage(): readonly string[] {
    return [...this.#damage.values()]
  }

  /** Everything that was kept, as JSON values; call once, before `keep`. */
  read(): readonly unknown[] {
    const { folder } = this.#to
    if (!existsSync(folder)) return []
    const files = readdirSync(folder).filter((name) => FILE.test(name))
    return files.sort().flatMap((name) => this.#readFile(name))
  }

  /** Keeps the line of a name, or nothing; resolves when the disk has it, rejects when it does not take it at once. */
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

  /** Writes all of them anew: the files are gone. */
  keepAgain(): void {
    for (const [number, shard] of this.#shards) this.#writeAnew(number, shard)
  }

  /** Writes files anew that are gone; those files. One look into the folder. */
  look(): readonly string[] {
    const { folder } = this.#to
    const resting = [...this.#shards].filter(([, shard]) => isOnDisk(shard))
    if (resting.length === 0) return []
    const there = new Set(existsSync(folder) ? readdirSync(folder) : [])
    const gone = resting.filter(([number]) => !there.has(fileOf(number)))
    for (const [number, shard] of gone) this.#writeAnew(number, shard)
    return gone.map(([number]) => join(folder, fileOf(number)))
  }

  /** The last try; when what is under way has ended. */
  async close(): Promise<void> {
    const last = [...this.#shards].map(async ([number, shard]) => {
      await shard.saving?.catch(() => undefined)
      if (shard.saved < shard.version) await this.#saving(number, shard)
    })
    await Promise.allSettled(last)
    this.#again.cancel()
  }

  #readFile(file: string): readonly unknown[] {
    const path = join(this.#to.folder, file)
    const values = readVersioned(path)
    if (values === undefined) {
      const fault = `${path}: found no resources that this version understands`
      this.#damage.set(Number.parseInt(file, 16), fault)
      this.#to.onDamage(fault)
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
    // One that is refused again says so itself.
    for (const number of this.#refused) {
      this.#saving(number, this.#shard(number)).catch(() => undefined)
    }
  }

  #writeAnew(number: number, shard: Shard): void {
    if (shard.lines.size === 0) return
    shard.version++
    // One that is refused says so itself, and is written again.
    this.#saved(number, shard).catch(() => undefined)
  }

  #shard(number: number): Shard {
    const known = this.#shards.get(number)
    if (known !== undefined) return known
    const shard: Shard = { lines: new Map(), version: 0, saved: 0, saving: undefined }
    this.#shards.set(number, shard)
    return shard
  }

  /** When the disk has the shard as it is now. */
  async #saved(number: number, shard: Shard): Promise<void> {
    const wanted = shard.version
    while (shard.saved < wanted) await this.#saving(number, shard)
  }

  /** One writing of a shard at a time. */
  async #saving(number: number, shard: Shard): Promise<void> {
    shard.saving ??= this.#save(number, shard).finally(() => (shard.saving = undefined))
    try {
      await shard.saving
    } catch (error) {
      this.#refused.add(number)
      this.#to.onFault(error instanceof Error ? error.message : String(error))
      this.#again.later()
      throw error
    }
  }

  async #save(number: number, shard: Shard): Promise<void> {
    const { folder, mayWrite } = this.#to
    const { version, lines } = shard
    const text = `{"version":${VERSION},"resources":[\n${[...lines.values()].join(',\n')}\n]}\n`
    const path = join(folder, fileOf(number))
    mayWrite?.()
    makeFolder(folder, 0o700)
    if (lines.size === 0) await rm(path, { force: true })
    else {
      await writeSynced(`${path}.new`, text)
      await rename(`${path}.new`, path)
    }
    await syncFolder(folder)
    shard.saved = version
    this.#refused.delete(number)
    this.#damage.delete(number)
  }
}

/** Whether the disk has a file for it, and none is under way. */
function isOnDisk({ lines, version, saved, saving }: Shard): boolean {
  return lines.size > 0 && saved === version && saving === undefined
}

function fileOf(number: number): string {
  return `${number.toString(16).padStart(2, '0')}.json`
}

/** The resources of a file of this version; undefined when it is something else. */
function readVersioned(path: string): readonly unknown[] | undefined {
  try {
    const value: unknown = JSON.parse(readFileSync(path, 'utf8'))
    if (!isMapping(value) || value['version'] !== VERSION) return undefined
    const { resources } = value
    return Array.isArray(resources) ? resources : undefined
  } catch {
    return undefined
  }
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

/** FNV-1a of the name's UTF-16 units, folded to a number of a file. */
function shardOf(name: string): number {
  let hash = 0x811c9dc5
  for (let i = 0; i < name.length; i++) hash = Math.imul(hash ^ name.charCodeAt(i), 0x01000193)
  return ((hash >>> 16) ^ hash) & (SHARDS - 1)
}
