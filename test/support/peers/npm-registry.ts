// An npm registry on loopback. It serves the installed packages that namegate needs at run time, and one tarball of namegate. npm
// installs from it without a network.

import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { once } from 'node:events'
import { dirname, join } from 'node:path'
import { z } from 'zod'

const MANIFEST = z.looseObject({
  name: z.string(),
  version: z.string(),
  dependencies: z.record(z.string(), z.string()).optional(),
})

type Manifest = z.infer<typeof MANIFEST>

interface Version {
  readonly manifest: Manifest
  readonly tarball: () => Buffer
}

export class NpmRegistry {
  /** By name, then by version. */
  readonly #packages = new Map<string, Map<string, Version>>()
  readonly #server = createServer((request, response) => this.#answer(request, response))

  private constructor(own: string) {
    const text = execFileSync('tar', ['-xzOf', own, 'package/package.json'], { encoding: 'utf8' })
    this.#add(MANIFEST.parse(JSON.parse(text)), '.', () => readFileSync(own))
  }

  static async start(own: string): Promise<NpmRegistry> {
    const registry = new NpmRegistry(own)
    registry.#server.listen(0, '127.0.0.1')
    await once(registry.#server, 'listening')
    return registry
  }

  get url(): string {
    const address = this.#server.address()
    if (address === null || typeof address === 'string') throw new Error('it does not listen')
    return `http://127.0.0.1:${address.port}`
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections()
    this.#server.close()
    await once(this.#server, 'close')
  }

  /** Adds a package and its dependencies. `folder` is where it is installed. */
  #add(manifest: Manifest, folder: string, tarball: () => Buffer): void {
    const versions = this.#packages.get(manifest.name) ?? new Map<string, Version>()
    if (versions.has(manifest.version)) return
    this.#packages.set(manifest.name, versions.set(manifest.version, { manifest, tarball }))
    for (const name of Object.keys(manifest.dependencies ?? {})) {
      const found = folderOf(name, folder)
      const text = readFileSync(join(found, 'package.json'), 'utf8')
      this.#add(MANIFEST.parse(JSON.parse(text)), found, () => pack(found))
    }
  }

  /** `/NAME` is the document of a package, `/NAME/-/VERSION` a tarball. npm writes `@scope%2fname`. */
  #answer(request: IncomingMessage, response: ServerResponse): void {
    const [name = '', version] = decodeURIComponent(request.url ?? '')
      .slice(1)
      .split('/-/')
    const versions = this.#packages.get(name)
    const one = versions?.get(version ?? '')
    if (versions === undefined) response.writeHead(404).end('{}')
    else if (one !== undefined) response.end(one.tarball())
    else response.end(JSON.stringify(this.#documentOf(name, versions)))
  }

  #documentOf(name: string, versions: ReadonlyMap<string, Version>): object {
    const entries = [...versions].map(([version, { manifest }]) => {
      const dist = { tarball: `${this.url}/${name}/-/${version}` }
      return [version, { ...manifest, dist }] as const
    })
    const latest = entries.at(-1)?.[0]
    return { name, 'dist-tags': { latest }, versions: Object.fromEntries(entries) }
  }
}

/** The folder where Node.js finds a package that another one imports. */
function folderOf(name: string, from: string): string {
  for (let folder = from; ; folder = dirname(folder)) {
    const found = join(folder, 'node_modules', name)
    if (existsSync(found)) return found
    if (folder === '.') throw new Error(`${name}, which ${from} needs, is not installed`)
  }
}

/** The tarball of an installed package, without packages inside it. */
function pack(folder: string): Buffer {
  const names = ['--exclude=./node_modules', '--transform=s,^[.],package,']
  return execFileSync('tar', ['-cz', '-C', folder, ...names, '.'], { maxBuffer: 64 << 20 })
}
