// Compiles src/, test/ and demo/ to JavaScript once, so that no test process compiles for itself. build/tests/ holds one module for
// each TypeScript file, under the same path. A module whose source has not changed since the last run is kept.
// `import.meta` in a module has the URL and paths of the source, so that tests find the files beside it.

import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, utimesSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { build } from 'esbuild'

const FOLDERS = ['src', 'test', 'demo']
/** Stands for fast-check in a run of properties. */
const PROPERTIES = fileURLToPath(new URL('../test/support/properties.ts', import.meta.url))

/** Compiles what has changed -> the folder with the modules. */
export async function compileModules({ isProperty }) {
  const folder = resolve(isProperty ? 'build/tests-property' : 'build/tests')
  mkdirSync(folder, { recursive: true })
  const sources = FOLDERS.filter((name) => existsSync(name))
    .flatMap((name) => readdirSync(name, { recursive: true }).map((path) => join(name, path)))
    .filter((path) => path.endsWith('.ts') && !path.endsWith('.d.ts'))
  const all = sources.map((source) => ({ source, module: join(folder, moduleOf(source)) }))
  if (isProperty) all.push({ source: PROPERTIES, module: join(folder, 'properties.js') })
  const timed = all.map((each) => ({ ...each, time: statSync(each.source).mtime }))
  const changed = timed.filter(({ module, time }) => !hasTime(module, time))
  if (changed.length > 0) await compile(folder, changed, isProperty)
  // A module has the time of its source; one that compiled halfway has another.
  for (const { module, time } of changed) utimesSync(module, time, time)
  return folder
}

/** Where the module of a source is, under the folder with the modules. */
export function moduleOf(source) {
  return source.replace(/\.ts$/, '.js')
}

function hasTime(path, time) {
  const own = statSync(path, { throwIfNoEntry: false })?.mtimeMs
  return own !== undefined && Math.abs(own - time.getTime()) < 2
}

async function compile(folder, files, isProperty) {
  await build({
    entryPoints: files.map(({ source, module }) => ({
      in: source,
      out: relative(folder, module).replace(/\.js$/, ''),
    })),
    outdir: folder,
    // Only a bundler may change what an import names. Every import is external.
    bundle: true,
    plugins: [{ name: 'modules', setup: (compiler) => setUp(compiler, folder, isProperty) }],
    format: 'esm',
    platform: 'node',
    target: 'node20',
    sourcemap: 'linked',
    sourcesContent: false,
    define: {
      'import.meta.url': 'urlOfSource',
      'import.meta.filename': 'nameOfSource',
      'import.meta.dirname': 'folderOfSource',
    },
    logLevel: 'error',
  })
}

function setUp(compiler, folder, isProperty) {
  compiler.onResolve({ filter: /./ }, ({ kind, path, importer, resolveDir }) => {
    if (kind === 'entry-point') return undefined
    if (isProperty && path === 'fast-check') return outside(join(folder, 'properties.js'))
    if (!path.startsWith('.')) return { path, external: true }
    const file = resolve(resolveDir, path)
    if (!path.endsWith('.ts') || importer === PROPERTIES) return outside(file)
    return {
      path: `./${relative(dirname(importer), file)}`.replace(/\.ts$/, '.js'),
      external: true,
    }
  })
  compiler.onLoad({ filter: /\.ts$/ }, ({ path }) => {
    const text = readFileSync(path, 'utf8')
    return { contents: text.includes('import.meta') ? placeOf(path) + text : text, loader: 'ts' }
  })
}

/** An import of what is no module of the folder. */
function outside(file) {
  return { path: pathToFileURL(file).href, external: true }
}

/** What stands for `import.meta`, in front of the first line, so that every line keeps its number. */
function placeOf(path) {
  const [url, name, folder] = [pathToFileURL(path).href, path, dirname(path)].map((text) =>
    JSON.stringify(text),
  )
  return `const urlOfSource = ${url}, nameOfSource = ${name}, folderOfSource = ${folder};`
}
