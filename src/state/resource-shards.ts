// External resources that the admin API gave, kept in the state folder: resources/00.json to ff.json, each with the
// resources whose names have its hash, so that keeping one costs the writing of a few hundred at most, and a broken file
// loses no more. A file is written beside, synced, renamed, and the folder synced: a crash leaves the old one or the new
// one. Changes that come while a file is being written go together with the next writing. One process at a time (the lock
// of the state folder).
//
//   { "version": 1, "resources": [ one a line ] }

import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { mkdir, open, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { isMapping } from '../core/source-document.ts'

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

export class ResourceShards {
  readonly #folder: string
  readonly #onFault: (fault: string) => void
  readonly #shards = new Map<number, Shard>()

  /** `onFault` is told of files that nobody can read: what they had is not known any more. */
  constructor(options: { readonly folder: string; readonly onFault: (fault: string) => void }) {
    this.#folder = options.folder
    this.#onFault = options.onFault
  }

  /** Everything that was kept, as JSON values; call once, before `keep`. */
  read(): readonly unknown[] {
    if (!existsSync(this.#folder)) return []
    const files = readdirSync(this.#folder).filter((name) => FILE.test(name))
    return files.sort().flatMap((name) => this.#readFile(join(this.#folder, name)))
  }

  /** Keeps the line of a name, or nothing; resolves when the disk has it, rejects when it cannot. */
  async keep(name: string, line: string | undefined): Promise<void> {
    const number = shardOf(name)
    const shard = this.#shard(number)
    if (shard.lines.get(name) !== line) {
      if (line === undefined) shard.lines.delete(name)
      else shard.lines.set(name, line)
      shard.version++
    }
    const wanted = shard.version
    while (shard.saved < wanted) {
      shard.saving ??= this.#save(number, shard).finally(() => (shard.saving = undefined))
      await shard.saving
    }
  }

  #readFile(path: string): readonly unknown[] {
    const values = readVersioned(path)
    if (values === undefined) {
      this.#onFault(`${path}: found no resources that this version understands`)
      return []
    }
    for (const value of values) {
      const name = isMapping(value) ? value['name'] : undefined
      if (typeof name !== 'string') continue
      this.#shard(shardOf(name)).lines.set(name, JSON.stringify(value))
    }
    return values
  }

  #shard(number: number): Shard {
    const known = this.#shards.get(number)
    if (known !== undefined) return known
    const shard: Shard = { lines: new Map(), version: 0, saved: 0, saving: undefined }
    this.#shards.set(number, shard)
    return shard
  }

  async #save(number: number, shard: Shard): Promise<void> {
    const { version, lines } = shard
    const text = `{"version":${VERSION},"resources":[\n${[...lines.values()].join(',\n')}\n]}\n`
    const path = join(this.#folder, `${number.toString(16).padStart(2, '0')}.json`)
    await mkdir(this.#folder, { recursive: true, mode: 0o700 })
    if (lines.size === 0) await rm(path, { force: true })
    else {
      await writeSynced(`${path}.new`, text)
      await rename(`${path}.new`, path)
    }
    await syncFolder(this.#folder)
    shard.saved = version
  }
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
