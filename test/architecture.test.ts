// Rules that a test can check: layers, packages and their folders, sizes, time and chance, types, and the content of the repository. Every
// exception is an entry in a list here, with its reason.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { test } from 'node:test'
import { blankNonCode, functionsOf, readSources, toSource, type Source } from './support/source.ts'

/** The first match counts. Layer numbers as in ARCHITECTURE.md; an import must be from a lower layer. */
const LAYERS: readonly (readonly [path: RegExp, layer: number])[] = [
  [/^src\/core\//, 0],
  [/^src\/documents\//, 0.5], // text to values that know their place, no I/O: policy files are YAML too
  [/^src\/endpoints\/registry/, 1],
  [/^src\/(dns|policy|identity)\//, 1],
  [/^src\/(lint|suggest)\//, 1.5], // tools over policies
  [/^src\/(ipcache|names)\//, 2],
  [/^src\/datapath\/[^/]+\.ts$/, 2],
  [/^src\/restore\/(state-port|saved-endpoints)\.ts$/, 2.3], // the port that enforcement writes to
  [/^src\/enforcement\//, 2.4], // puts L0 to L2 together, still without I/O, as do the next two
  [/^src\/(explain|reconcile)\//, 2.5],
  [/^src\/(restore|flows\/record)\//, 2.6],
  [
    /^src\/(datapath|proxy|intercept|native|config|telemetry|admin|client|state|endpoints|sources|sandbox|flows|systemd|kubernetes)\//,
    3,
  ],
  [/^src\/(cli|daemon|handover|library)\//, 4],
  [/^src\/[^/]+\.ts$/, 4],
]

/** Imports inside one layer from another folder. */
const SIDEWAYS: readonly string[] = [
  'datapath -> ipcache', // the committer reads what changed there
  'names -> ipcache', // learned names are facts
  'names -> datapath', // expiry asks the port for live peers
  'identity -> policy', // the selector cache matches labels with policy's patterns
  'policy -> identity', // rules name reserved identities and label sets
  'endpoints -> identity', // an endpoint's labels are a label set
  'sources -> config', // sources read files as config reads them
  'sources -> endpoints', // and parse endpoints files
  ...['sources', 'endpoints', 'config'].map((to) => `kubernetes -> ${to}`), // a cluster is a source
  'sandbox -> intercept', // nft(8) and ip(8) are run alike
  'sandbox -> datapath', // its rules are encoded as the nftables adapter encodes its own
]

/** The folders of each package. Other packages cannot be imported. */
const PACKAGES: Readonly<Record<string, RegExp>> = {
  'dns-packet': /^src\/dns\/codec\.ts$/,
  'ip-num': /^src\/core\/ip\.ts$/,
  'lru-cache': /^src\//,
  pino: /^src\/telemetry\//,
  'pino-pretty': /^src\/telemetry\//,
  'prom-client': /^src\/telemetry\//,
  tldts: /^src\/suggest\/collapse\.ts$/,
  yaml: /^src\/(documents\/|config\/|policy\/load|endpoints\/file)/,
  zod: /^src\/(documents\/|config\/|admin\/document\/|policy\/load|endpoints\/file)/,
}

/** A builtin without I/O in these files. */
const PURE_BUILTINS: readonly string[] = [
  'src/datapath/prefix-batch.ts imports node:os', // the byte order of the machine, a constant
  'src/core/tables/keyed-hash.ts imports node:crypto', // a secret, drawn once
  'src/core/random.ts imports node:crypto', // chance comes through a port
]

/** Data tables can be longer than 300 lines. */
const LONG_FILES = /^src\/(daemon\/metrics|client\/api-types|library\/config-keys)\.ts$/

/** Files that need casts: each makes a brand or is the typed interface of something untyped. */
const MAY_CAST = /^src\/(core\/(brand|ids)\.ts$|client\/decode\.ts$|native\/)/

const sources = readSources('src')
const tests = [...readSources('test'), ...readSources('demo')]

/** `path:line: text` of every match in code, outside comments and strings. */
function findAll(files: readonly Source[], pattern: RegExp): string[] {
  return files.flatMap(({ path, code }) =>
    code
      .split('\n')
      .flatMap((line, i) => (pattern.test(line) ? [`${path}:${i + 1}: ${line.trim()}`] : [])),
  )
}

function layerOf(path: string): number | undefined {
  return LAYERS.find(([pattern]) => pattern.test(path))?.[1]
}

function folderOf(path: string): string {
  return path.split('/')[1] ?? ''
}

function mayImport(from: string, to: string): boolean {
  const [own, other] = [layerOf(from), layerOf(to)]
  if (own === undefined || other === undefined) return false
  if (other !== own) return other < own
  return (
    own === 4 ||
    folderOf(from) === folderOf(to) ||
    (own === 3 && /^src\/(native\/|telemetry\/|config\/config\.ts$)/.test(to)) ||
    SIDEWAYS.includes(`${folderOf(from)} -> ${folderOf(to)}`)
  )
}

test('src has a layer for every file, and imports point down the layers only', () => {
  const faults = sources.flatMap(({ path, imports }) =>
    layerOf(path) === undefined
      ? [`${path} has no layer`]
      : imports
          .filter(({ target }) => target.startsWith('src/') && !mayImport(path, target))
          .map(({ target }) => `${path} imports ${target}`),
  )
  assert.deepEqual(faults, [])
})

test('mayImport separates up, down and sideways', () => {
  const rows: readonly (readonly [from: string, to: string, may: boolean, reason: string])[] = [
    ['src/core/a.ts', 'src/dns/b.ts', false, 'up'],
    ['src/dns/a.ts', 'src/core/b.ts', true, 'down'],
    ['src/dns/a.ts', 'src/policy/b.ts', false, 'sideways, not in the list'],
    ['src/names/a.ts', 'src/ipcache/b.ts', true, 'sideways, in the list'],
    ['src/names/a.ts', 'src/datapath/ebpf/b.ts', false, 'an adapter is above'],
    ['src/datapath/ebpf/a.ts', 'src/datapath/datapath.ts', true, 'the port is below'],
    ['src/proxy/a.ts', 'src/admin/b.ts', false, 'sideways in L3'],
    ['src/proxy/a.ts', 'src/native/b.ts', true, 'the native face serves all of L3'],
    ['src/proxy/a.ts', 'src/daemon/daemon.ts', false, 'up'],
  ]
  for (const [from, to, may, reason] of rows) assert.equal(mayImport(from, to), may, reason)
})

test('src has no import cycles, those of types included', () => {
  const targets = new Map(
    sources.map(({ path, imports }) => [
      path,
      imports.filter((each) => !each.dynamic).map((each) => each.target),
    ]),
  )
  const done = new Set<string>()
  const cycles: string[] = []
  const visit = (path: string, trail: readonly string[]): void => {
    if (trail.includes(path)) cycles.push([...trail.slice(trail.indexOf(path)), path].join(' -> '))
    if (done.has(path) || trail.includes(path)) return
    for (const target of targets.get(path) ?? []) visit(target, [...trail, path])
    done.add(path)
  }
  for (const path of targets.keys()) visit(path, [])
  assert.deepEqual(cycles, [])
})

test('src uses a package only in its folders, and layers 0 to 2 do no I/O', () => {
  const faults = sources.flatMap(({ path, imports }) =>
    imports.flatMap(({ target }) => {
      if (target.startsWith('src/')) return []
      if (target.startsWith('node:')) {
        const found = `${path} imports ${target}`
        return (layerOf(path) ?? 0) < 3 && !PURE_BUILTINS.includes(found) ? [found] : []
      }
      return PACKAGES[target]?.test(path) === true ? [] : [`${path} imports ${target}`]
    }),
  )
  assert.deepEqual(faults, [])
})

test('imports name the file with its ending; there are no barrels and no default exports', () => {
  const all = [...sources, ...tests]
  const faults = all.flatMap(({ path, imports }) =>
    imports
      .filter(({ target }) => /^(src|test|demo)\//.test(target) && !/\.(ts|json)$/.test(target))
      .map(({ target }) => `${path} imports ${target}`),
  )
  const barrels = findAll(sources, /^export \*|^export default/)
  assert.deepEqual([...faults, ...barrels, ...sources.filter(isBarrel).map((s) => s.path)], [])
})

const isBarrel = ({ path }: Source): boolean => path.endsWith('/index.ts')

test('files stay below 300 lines and functions below 60', () => {
  const files = [...sources, ...tests]
    .map(({ path, text }) => ({ path, lines: text.split('\n').length - 1 }))
    .filter(({ path, lines }) => lines > 300 && !LONG_FILES.test(path))
    .map(({ path, lines }) => `${path}: ${lines} lines`)
  const functions = sources.flatMap(({ path, code }) =>
    functionsOf(code)
      .filter(({ lines }) => lines > 60)
      .map(({ name, line, lines }) => `${path}:${line}: ${name} has ${lines} lines`),
  )
  assert.deepEqual([...files, ...functions], [])
})

test('every file of src opens with a header comment', () => {
  assert.deepEqual(
    sources.filter(({ text }) => !text.startsWith('//')).map(({ path }) => path),
    [],
  )
})

test('time comes only from core/clock.ts, and no code uses Math.random', () => {
  const others = sources.filter(({ path }) => path !== 'src/core/clock.ts')
  const timers =
    /\bDate\.now\b|\bnew Date\(\)|(?<![.\w])(?:set|clear)(?:Timeout|Interval|Immediate)\b|\bperformance\.now\b|\bhrtime\b/
  assert.deepEqual(findAll(others, timers), [])
  assert.deepEqual(findAll([...sources, ...tests], /\bMath\.random\b/), [])
})

test('types are strict: no any, no casts, no ! except on indexed reads', () => {
  const all = [...sources, ...tests]
  const uncast = sources.filter(({ path }) => !MAY_CAST.test(path))
  const isCast = /(?<!^\s*(?:import|export)\b.*|^\s+(?:type )?\w+|\*)\s\bas (?!const\b)\w/
  assert.deepEqual(findAll(all, /(?:[:|&]\s*|<|\bas )any\b(?!\s*[(.])|\bany\[\]/), [])
  assert.deepEqual(findAll(uncast, isCast), [])
  assert.deepEqual(findAll(sources, /[\w)]!(?=[\s;,.)\]}[]|$)(?!\s*=[^=])/), [])
  assert.deepEqual(
    all.filter(({ text }) => /@ts-(?:ignore|nocheck)/.test(text) && !text.includes('blankNonCode')),
    [],
  )
})

test('the runner finds every test file', () => {
  const listed = execFileSync(process.execPath, ['scripts/test.mjs', '--list'], {
    encoding: 'utf8',
  })
  const picked = new Set(listed.split('\n').map((line) => line.split(' ')[1]))
  const written = tests.filter(({ imports }) => imports.some((each) => each.target === 'node:test'))
  const missed = written.filter(({ path }) => !picked.has(path) && !isSharedSuite(path))
  assert.deepEqual(
    missed.map(({ path }) => path),
    [],
  )
})

/** A suite that test files call, such as the contract over all datapaths, or a part of it. */
function isSharedSuite(path: string): boolean {
  return (
    !path.endsWith('.test.ts') &&
    tests.some(({ imports }) => imports.some(({ target }) => target === path))
  )
}

test('the licence exists, and the lock file names no registry', () => {
  assert.match(readFileSync('LICENSE', 'utf8'), /Apache License\s+Version 2\.0, January 2004/)
  assert.doesNotMatch(readFileSync('package-lock.json', 'utf8'), /"resolved"/)
})

test('tracked files contain no path of a machine and no host of a registry', () => {
  const paths = ['work', 'home', 'root', 'Users', 'tmp'].map((name) => `/${name}/`).join('|')
  const hosts = ['registry', 'npmjs'].join('\\.') + '|' + ['deb', 'debian'].join('\\.')
  const forbidden = new RegExp(`(?:^|[\\s'"\`=(:])(?:${paths})|${hosts}`)
  const faults = trackedFiles().flatMap((path) => {
    const text = readFileSync(path, 'utf8')
    const at = text.split('\n').findIndex((line) => forbidden.test(line))
    return at < 0 ? [] : [`${path}:${at + 1}: ${text.split('\n')[at]?.trim() ?? ''}`]
  })
  assert.deepEqual(faults, [])
})

/** From git in a repository, else (in an unpacked archive) everything except build results. */
function trackedFiles(): string[] {
  const binary = /\.(?:node|o|png|pcap)$/
  if (existsSync('.git')) {
    return execFileSync('git', ['ls-files', '-z'], { encoding: 'utf8' })
      .split('\0')
      .filter((path) => path !== '' && !binary.test(path) && existsSync(path))
  }
  return readdirSync('.', { recursive: true, encoding: 'utf8', withFileTypes: true })
    .filter((entry) => entry.isFile() && !binary.test(entry.name))
    .map((entry) => `${entry.parentPath}/${entry.name}`.replace(/^\.\//, ''))
    .filter((path) => !/^(?:node_modules|dist|build|var|\.git)\/|\/build\//.test(path))
}

test('the tokenizer of this test separates code from comments, strings and patterns', () => {
  const rows: readonly (readonly [text: string, code: string, reason: string])[] = [
    ['a // b', 'a     ', 'line comment'],
    ['a /* b\nc */ d', 'a     \n     d', 'block comment keeps its lines'],
    ["x('setTimeout')", "x('          ')", 'string'],
    ['x(/any"/) + 1', 'x(      ) + 1', 'pattern with a quote'],
    ['a / b / c', 'a / b / c', 'division is no pattern'],
    ['`x ${a({ b: 1 })} any` + c', '`    a({ b: 1 })}    ` + c', 'a hole in a template is code'],
  ]
  for (const [text, code, reason] of rows) {
    const blanked = blankNonCode(text)
    assert.equal(blanked.length, text.length, reason)
    assert.equal(blanked.replace(/\$\{|`/g, '').replace(/ /g, ''), code.replace(/`| /g, ''), reason)
  }
  const spans = functionsOf(
    'function f(\n  a: number,\n): void {\n  g(\n  )\n}\nclass C {\n  m(): void {\n  }\n}\n',
  )
  assert.deepEqual(spans, [
    { name: 'f', line: 1, lines: 6 },
    { name: 'm', line: 8, lines: 2 },
  ])
  const source = toSource(
    'src/a/b.ts',
    "import type { X } from '../c.ts'\nimport y from 'y'\nawait import('./z.ts')\n",
  )
  assert.deepEqual(source.imports, [
    { target: 'src/c.ts', typeOnly: true, dynamic: false },
    { target: 'y', typeOnly: false, dynamic: false },
    { target: 'src/a/z.ts', typeOnly: false, dynamic: true },
  ])
})
