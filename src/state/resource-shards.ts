// External resources that the admin API gave, kept in the state folder: resources/00.json to ff.json, each with the
// resources whose names have its hash, so that keeping one costs the writing of a few hundred at most, and a broken file
// loses no more (`resource-files.ts` has their form). Changes that come while a file is being written go together with the
// next writing, and what the disk refused is written again until it takes it; so is what is not in its place any more. A
// folder that cannot be read is told and stops nothing. One process at a time (the lock of the state folder).

import { join } from 'node:path'
import type { Clock } from '../core/clock.ts'
import { messageOf } from '../core/errors.ts'
import { isMapping } from '../documents/source-document.ts'
import { makeFolder } from './files/make-folder.ts'
import { entriesIn, readResources, writeResources } from './resource-files.ts'
import { WriteAgain } from './write-again.ts'

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
  /** What was wrong with the folder at the start. */
  #folderDamage: string | undefined

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
    const ofFolder = this.#folderDamage === undefined ? [] : [this.#folderDamage]
    return [...ofFolder, ...this.#damage.values()]
  }

  /** Everything that was kept, as JSON values; call once, before `keep`. */
  read(): readonly unknown[] {
    const { folder, onDamage } = this.#to
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

  /** Writes files anew that are gone, or that nobody can look for; those files. One look into the folder. */
  look(): readonly string[] {
    const { folder } = this.#to
    const resting = [...this.#shards].filter(([, shard]) => isOnDisk(shard))
    if (resting.length === 0 && this.#folderDamage === undefined) return []
    const there = this.#filesThere()
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

  /** Names of files in the folder; none when the disk does not say: then it is asked to take them anew. */
  #filesThere(): ReadonlySet<string> {
    try {
      const entries = entriesIn(this.#to.folder)
      const names = entries.filter((entry) => entry.isFile()).map(({ name }) => name)
      // Nothing is passed over any more.
      if (!names.some((name) => FILE.test(name))) this.#folderDamage = undefined
      return new Set(names)
    } catch {
      return new Set()
    }
  }

  #readFile(file: string): readonly unknown[] {
    const path = join(this.#to.folder, file)
    const values = readResources(path)
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
      this.#to.onFault(messageOf(error))
      this.#again.later()
      throw error
    }
  }

  async #save(number: number, shard: Shard): Promise<void> {
    const { folder, mayWrite } = this.#to
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

/** Whether the disk has a file for it, and none is under way. */
function isOnDisk({ lines, version, saved, saving }: Shard): boolean {
  return lines.size > 0 && saved === version && saving === undefined
}

function fileOf(number: number): string {
  return `${number.toString(16).padStart(2, '0')}.json`
}

/** FNV-1a of the name's UTF-16 units, folded to a number of a file. */
function shardOf(name: string): number {
  let hash = 0x811c9dc5
  for (let i = 0; i < name.length; i++) hash = Math.imul(hash ^ name.charCodeAt(i), 0x01000193)
  return ((hash >>> 16) ^ hash) & (SHARDS - 1)
}
