// Compiles src/, test/ and demo/ to JavaScript once, so that no test process compiles for itself. In build/tests/, `parts.js` holds every
// module that others import, each evaluated when it is first used: one file is there in a quarter of the time that its 800 modules take.
// Test files and programs that wait at their top level have a module each, under their own path, which takes what it imports from
// parts.js (test-parts.mjs). Programs that stand for other hosts hold what they import themselves, because each is started many times, and
// parts.js takes half of such a start. What has not changed since the last run is kept.
// `import.meta` in a module has the URL and paths of the source, so that tests find the files beside it.

import { spawnSync } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join, relative, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { build } from 'esbuild'

const FOLDERS = ['src', 'test', 'demo']
/** A file here that reads its arguments is a program that stands for another host. */
const PEERS = 'test/support/peers/'
const PARTS = fileURLToPath(new URL('./test-parts.mjs', import.meta.url))
/** Stands for fast-check in a run of properties. */
const PROPERTIES = fileURLToPath(new URL('../test/support/properties.ts', import.meta.url))
/** Packages that both src/ and tests use: a process must not have two of each. */
const PACKAGES = ['dns-packet', 'fast-check', 'ip-num', 'yaml', 'zod']
/** What no bundle can hold, or what few tests load. */
const EXTERNAL = ['ajv', 'namegate', 'oxfmt', 'puppeteer-core', '@seriousme/*', '*.node']
/** Waits at the top level, which only a module of its own can: in a statement, or in a block. */
const WAITS = /^(?! )(?:[\w .{}:,]+ = |(?:if|for|while) .*)?\bawait\b/m
const BLOCKS = /^(?:if|for|switch|try|while)\b.*\{$[^]*?^\}/gm

const SETTINGS = {
  bundle: true,
  platform: 'node',
  target: 'node20',
  sourcemap: 'linked',
  sourcesContent: false,
  external: EXTERNAL,
  define: {
    'import.meta.url': 'urlOfSource',
    'import.meta.filename': 'nameOfSource',
    'import.meta.dirname': 'folderOfSource',
  },
  logLevel: 'error',
}

/** Compiles what has changed -> the folder with the modules. */
export async function compileModules({ isProperty }) {
  const folder = resolve(isProperty ? 'build/tests-property' : 'build/tests')
  mkdirSync(folder, { recursive: true })
  const sources = FOLDERS.filter((name) => existsSync(name))
    .flatMap((name) => readdirSync(name, { recursive: true }).map((path) => join(name, path)))
    .filter((path) => path.endsWith('.ts') && !path.endsWith('.d.ts'))
  const alone = new Set(sources.filter(standsAlone))
  await compileParts(
    folder,
    sources.filter((path) => !alone.has(path)),
    isProperty,
  )
  await compileAlone(folder, alone)
  await compilePeers(
    folder,
    sources.filter((path) => !path.endsWith('.test.ts')),
  )
  return folder
}

/** Where the module of a source is, under the folder with the modules. */
export function moduleOf(source) {
  return source.replace(/\.ts$/, '.js')
}

function standsAlone(path) {
  if (path.endsWith('.test.ts')) return true
  const text = readFileSync(path, 'utf8')
  return WAITS.test(text) || (text.match(BLOCKS) ?? []).some((block) => /\bawait\b/.test(block))
}

async function compilePeers(folder, sources) {
  const list = join(folder, 'peers.json')
  const state = stateOf(sources)
  if (existsSync(list) && readFileSync(list, 'utf8') === state) return
  const peers = sources.filter(
    (path) => path.startsWith(PEERS) && readFileSync(path, 'utf8').includes('process.argv'),
  )
  if (peers.length === 0) return
  await build({
    ...SETTINGS,
    entryPoints: peers.map((source) => ({ in: source, out: source.replace(/\.ts$/, '') })),
    outdir: join(folder, 'peers'),
    format: 'esm',
    // Packages call `require`.
    banner: {
      js: "import { createRequire as requireFrom } from 'node:module'; const require = requireFrom(import.meta.url);",
    },
    plugins: [{ name: 'peers', setup: loadSources }],
  })
  writeFileSync(list, state)
}

function stateOf(sources) {
  return JSON.stringify([PACKAGES, sources.map((path) => [path, statSync(path).mtimeMs])])
}

async function compileParts(folder, parts, isProperty) {
  const list = join(folder, 'parts.json')
  const state = stateOf(parts)
  if (existsSync(list) && readFileSync(list, 'utf8') === state) return
  rmSync(list, { force: true })
  const names = [...PACKAGES.filter((name) => existsSync(join('node_modules', name))), ...parts]
  const contents = names.map((name) => {
    const path = JSON.stringify(PACKAGES.includes(name) ? `package:${name}` : `./${name}`)
    return `parts[${JSON.stringify(name)}] = () => require(${path})`
  })
  await build({
    ...SETTINGS,
    stdin: { contents: contents.join('\n'), resolveDir: process.cwd() },
    outfile: join(folder, 'parts.js'),
    format: 'cjs',
    charset: 'ascii',
    banner: { js: '(function (require, parts) {' },
    footer: { js: '})' },
    plugins: [{ name: 'parts', setup: (compiler) => setUpParts(compiler, isProperty) }],
  })
  const env = { ...process.env, NAMEGATE_TEST_MODULES: folder }
  spawnSync(process.execPath, [PARTS], { env, stdio: 'inherit' })
  // From when they stood alone: test-program.mjs would start these.
  for (const part of parts) rmSync(join(folder, moduleOf(part)), { force: true })
  writeFileSync(list, state)
}

function setUpParts(compiler, isProperty) {
  compiler.onResolve({ filter: /^package:/ }, ({ path }) => ({ path, namespace: 'package' }))
  compiler.onLoad({ filter: /./, namespace: 'package' }, ({ path }) => ({
    contents: `export * from ${JSON.stringify(path.slice('package:'.length))}`,
    resolveDir: process.cwd(),
  }))
  if (isProperty) {
    compiler.onResolve({ filter: /^fast-check$/ }, ({ importer }) =>
      importer === PROPERTIES ? undefined : { path: PROPERTIES },
    )
  }
  loadSources(compiler)
}

async function compileAlone(folder, sources) {
  const all = [...sources].map((source) => {
    return { source, module: join(folder, moduleOf(source)), time: statSync(source).mtime }
  })
  const changed = all.filter(({ module, time }) => !hasTime(module, time))
  if (changed.length === 0) return
  await build({
    ...SETTINGS,
    entryPoints: changed.map(({ source }) => ({ in: source, out: source.replace(/\.ts$/, '') })),
    outdir: folder,
    format: 'esm',
    banner: { js: `import partOf from ${JSON.stringify(pathToFileURL(PARTS).href)};` },
    plugins: [{ name: 'alone', setup: (compiler) => setUpAlone(compiler, folder, sources) }],
  })
  // A module has the time of its source; one that compiled halfway has another.
  for (const { module, time } of changed) utimesSync(module, time, time)
}

function hasTime(path, time) {
  const own = statSync(path, { throwIfNoEntry: false })?.mtimeMs
  return own !== undefined && Math.abs(own - time.getTime()) < 2
}

function setUpAlone(compiler, folder, sources) {
  compiler.onResolve({ filter: /./ }, ({ kind, path, resolveDir }) => {
    if (kind === 'entry-point') return undefined
    if (PACKAGES.includes(path)) return { path, namespace: 'part' }
    if (!path.startsWith('.')) return { path, external: true }
    const file = resolve(resolveDir, path)
    const name = relative(process.cwd(), file)
    if (sources.has(name)) return outside(join(folder, moduleOf(name)))
    return path.endsWith('.ts') ? { path: name, namespace: 'part' } : outside(file)
  })
  compiler.onLoad({ filter: /./, namespace: 'part' }, ({ path }) => ({
    contents: `module.exports = partOf(${JSON.stringify(path)})`,
  }))
  loadSources(compiler)
}

/** An import of what is no part. */
function outside(file) {
  return { path: pathToFileURL(file).href, external: true }
}

function loadSources(compiler) {
  compiler.onLoad({ filter: /\.ts$/, namespace: 'file' }, ({ path }) => {
    if (path.includes('/node_modules/')) return undefined
    const text = readFileSync(path, 'utf8')
    return { contents: text.includes('import.meta') ? placeOf(path) + text : text, loader: 'ts' }
  })
}

/** What stands for `import.meta`, in front of the first line, so that every line keeps its number. */
function placeOf(path) {
  const [url, name, folder] = [pathToFileURL(path).href, path, join(path, '..')].map((text) =>
    JSON.stringify(text),
  )
  return `const urlOfSource = ${url}, nameOfSource = ${name}, folderOfSource = ${folder};`
}
