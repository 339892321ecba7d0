// Finds the files of the page on disk, and keeps them in memory after the first request: the files in page/, and the ES modules of preact,
// htm and uPlot. Each file is kept as it is and compressed.

import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { UnavailableError } from '../../core/errors.ts'

export interface PageFile {
  readonly type: string
  readonly etag: string
  readonly plain: Buffer
  readonly gzipped: Buffer
}

/** Path of a request -> file in page/. */
const OWN: Readonly<Record<string, string>> = {
  '/': 'index.html',
  '/page/style.css': 'style.css',
  '/page/icon.svg': 'icon.svg',
  '/page/app.js': 'app.js',
  '/page/live.js': 'live.js',
  '/page/html.js': 'html.js',
  '/page/overview.js': 'overview.js',
  '/page/rates.js': 'rates.js',
  '/page/refusals.js': 'refusals.js',
  '/page/explorer.js': 'explorer.js',
  '/page/endpoints.js': 'endpoints.js',
}

/** Path of a request -> package, and the file beside the file that Node.js finds for the package. */
export const LIBRARIES: Readonly<Record<string, readonly [packageName: string, file: string]>> = {
  '/page/lib/preact.js': ['preact', 'preact.mjs'],
  '/page/lib/htm.js': ['htm', 'htm.module.js'],
  '/page/lib/uplot.js': ['uplot', 'uPlot.esm.js'],
  '/page/lib/uplot.css': ['uplot', 'uPlot.min.css'],
}

/** What a request without a session gets. It is the only file that such a request gets. */
export const SIGN_IN = 'sign-in.html'

const TYPES: Readonly<Record<string, string>> = {
  html: 'text/html; charset=utf-8',
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  mjs: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml',
}

const compress = promisify(gzip)

export class PageFiles {
  readonly #kept = new Map<string, Promise<PageFile>>()

  /** Returns the file for the path of a request. Undefined when the page has no such file. Rejects when the installation lacks it. */
  async get(path: string): Promise<PageFile | undefined> {
    if (!Object.hasOwn(OWN, path) && !Object.hasOwn(LIBRARIES, path)) return undefined
    return await this.#load(path)
  }

  /** The form that asks for the token. */
  async signIn(): Promise<PageFile> {
    return await this.#load(SIGN_IN)
  }

  async #load(path: string): Promise<PageFile> {
    const known = this.#kept.get(path)
    if (known !== undefined) return await known
    const loading = read(placeOf(path))
    this.#kept.set(path, loading)
    // A file that could not be read is looked for again.
    loading.catch(() => this.#kept.delete(path))
    return await loading
  }
}

async function read(place: string): Promise<PageFile> {
  const plain = await readFile(place)
  const ending = place.slice(place.lastIndexOf('.') + 1)
  const etag = `"${createHash('sha256').update(plain).digest('base64url').slice(0, 22)}"`
  const type = TYPES[ending] ?? 'application/octet-stream'
  return { type, etag, plain, gzipped: await compress(plain) }
}

function placeOf(path: string): string {
  const [packageName, file] = LIBRARIES[path] ?? []
  if (packageName === undefined || file === undefined) {
    return join(pageFolder(), OWN[path] ?? path)
  }
  return join(dirname(createRequire(import.meta.url).resolve(packageName)), file)
}

/** The folder page/ of the package, seen from src/, from dist/src/ or from the bundle in dist/. */
function pageFolder(): string {
  let folder = dirname(fileURLToPath(import.meta.url))
  for (;;) {
    const page = join(folder, 'page')
    if (existsSync(join(page, OWN['/'] ?? ''))) return page
    const above = dirname(folder)
    if (above === folder)
      throw new UnavailableError('Cannot serve the page: no folder page: install namegate again')
    folder = above
  }
}
