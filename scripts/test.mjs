// Runs the tests and counts them by kind. Every test file is compiled once (scripts/test-modules.mjs) and a process of its own, two at
// a time, format, lint and types first; kernel and conformance tests one by one afterwards, and behind them whether the
// conformance table agrees with what ran. Ends with a table by kind and, as the very last line, `N passed, N failed,
// N skipped`. Exit 1 on any failure.
//   node scripts/test.mjs [--list] [--kind KIND] [--results FILE] [PART-OF-PATH ...]
//   node scripts/test.mjs --property [--runs Nx] [--seed SEED [--path PATH]] [--list] [PART-OF-PATH ...]
// `--results` also writes every test with its outcome as JSON. `--property`: the files that hold properties, however long they
// take, each property N times as often as usual; seed and path replay what a failure names.
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { compileModules, moduleOf } from './test-modules.mjs'
import { KINDS, kindOfFile, readResults } from './test-results.mjs'

/** Longest run of one file before it is ended, in milliseconds; NAMEGATE_TEST_LIMIT (seconds) for slow machines. */
const limitMs = Number(process.env.NAMEGATE_TEST_LIMIT ?? 300) * 1000

/** Of every test file. */
const ENV = { VALIDATE: '1', NAMEGATE_TEST: '1' }

/** Shown first, because a fault there is the quickest to repair. */
const FIRST = 'test/style.test.ts'
/** Runs behind all others, with their results in the file that NAMEGATE_RESULTS names. */
const LAST = 'test/conformance/ran.test.ts'

function collect() {
  return readdirSync('test', { recursive: true })
    .map((path) => join('test', path))
    .filter((path) => path.endsWith('.test.ts'))
    .sort((a, b) => Number(b === FIRST) - Number(a === FIRST) || (a < b ? -1 : 1))
}

/** Whether a file tries something random, and how often can be said (test/support/properties.ts). */
function holdsProperty(file) {
  return /from '(fast-check|\S+support\/properties\.ts)'/.test(readFileSync(file, 'utf8'))
}

/** `how`: values of the options. What the files need to know of a run of properties. */
function propertyEnv({ runs = '1x', seed, path }) {
  const times = Number(/^(\d+)x$/.exec(runs)?.[1])
  if (!(times > 0)) throw new Error(`--runs takes a number and x, as 100x: received ${runs}`)
  return {
    NAMEGATE_RUNS: String(times),
    ...(seed === undefined ? {} : { NAMEGATE_SEED: seed }),
    ...(path === undefined ? {} : { NAMEGATE_PATH: path }),
  }
}

const running = new Set()

function endGroup(child, signal) {
  try {
    process.kill(-child.pid, signal)
  } catch {
    // It has ended by itself.
  }
}

/**
 * One file -> exit code, output and results. Killed with everything it started when it outlives the limit. `folder`: for events.
 * `modules`: the compiled files. `property`: the environment of a run of properties, which has no limit and says how far it is.
 * `more`: further environment of this file.
 */
function runFile(file, { folder, modules, property }, more) {
  const events = join(folder, `${file.replaceAll('/', '_')}.jsonl`)
  const reporter = new URL('./test-reporter.mjs', import.meta.url).href
  const args = [
    '--enable-source-maps',
    `--test-reporter=${reporter}`,
    `--test-reporter-destination=${events}`,
    join(modules, moduleOf(file)),
  ]
  const env = { ...process.env, ...ENV, NAMEGATE_TEST_MODULES: modules, ...property, ...more }
  const started = performance.now()
  return new Promise((resolve) => {
    const child = spawn(process.execPath, args, {
      env,
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    running.add(child)
    let output = ''
    let hung = false
    const end = () => {
      hung = true
      endGroup(child, 'SIGTERM')
      setTimeout(() => endGroup(child, 'SIGKILL'), 5000).unref()
    }
    const timer = property === undefined ? setTimeout(end, limitMs) : undefined
    child.stdout.on('data', (bytes) => (output += bytes))
    child.stderr.on('data', (bytes) => {
      output += bytes
      if (property !== undefined) console.log(indent(`${file}: ${bytes}`))
    })
    child.on('exit', (code, signal) => {
      clearTimeout(timer)
      running.delete(child)
      endGroup(child, 'SIGKILL') // what the file left running
      const seconds = (performance.now() - started) / 1000
      const ended = hung
        ? `hung: ended after ${limitMs / 1000} s`
        : (signal ?? (code === 0 ? undefined : `exit ${code}`))
      resolve({ file, seconds, output, ...readResults(file, readEvents(events), ended) })
    })
  })
}

function readEvents(path) {
  try {
    return readFileSync(path, 'utf8')
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line))
  } catch {
    return []
  }
}

function indent(text) {
  return text.trimEnd().replace(/^/gm, '      ')
}

function show({ file, seconds, output, tests, notes }, isLong) {
  const failed = tests.filter((test) => test.outcome === 'failed')
  const count = (outcome) => tests.filter((test) => test.outcome === outcome).length
  const skipped = count('skipped') > 0 ? `, ${count('skipped')} skipped` : ''
  console.log(
    `${failed.length > 0 ? 'FAIL' : 'ok  '}  ${file}  ${count('passed')} passed${skipped}  ${seconds.toFixed(1)} s`,
  )
  for (const note of notes) console.log(`      ${note}`)
  for (const test of isLong ? tests.filter((each) => each.milliseconds >= 50) : [])
    console.log(`      ${(test.milliseconds / 1000).toFixed(1).padStart(8)} s  ${test.name}`)
  for (const test of failed) console.log(`   x  ${test.name}\n${indent(test.error)}`)
  if (failed.length > 0 && output.trim() !== '')
    console.log(`   output:\n${indent(output.slice(-8000))}`)
}

async function runAll(files, place) {
  const { folder, property } = place
  const results = []
  const runOne = async (file, more) => {
    const result = await runFile(file, place, more)
    show(result, property !== undefined)
    results.push(result)
  }
  const isAlone = (file) => ['conformance', 'kernel'].includes(kindOfFile(file))
  const others = files.filter((file) => file !== LAST)
  const queue = others.filter((file) => !isAlone(file))
  const worker = async () => {
    for (let file = queue.shift(); file !== undefined; file = queue.shift()) await runOne(file)
  }
  await Promise.all(
    Array.from({ length: Math.max(2, Math.min(4, availableParallelism())) }, worker),
  )
  for (const file of others.filter(isAlone)) await runOne(file)
  if (others.length > 0 && files.includes(LAST)) {
    const path = join(folder, 'results.json')
    writeResults(path, results)
    await runOne(LAST, { NAMEGATE_RESULTS: path })
  }
  return results
}

function writeResults(path, results) {
  writeFileSync(path, JSON.stringify(results.flatMap(({ tests }) => tests)))
}

function summarize(results, seconds) {
  const tests = results.flatMap((result) => result.tests)
  const failures = tests.filter((test) => test.outcome === 'failed')
  if (failures.length > 0) console.log('\nFailed:')
  for (const test of failures) console.log(`  ${test.file}: ${test.name}`)
  console.log(
    `\n${'kind'.padEnd(12)}${['tests', 'passed', 'failed', 'skipped'].map((head) => head.padStart(9)).join('')}`,
  )
  const count = (list, outcome) => list.filter((test) => test.outcome === outcome).length
  const outcomes = ['passed', 'failed', 'skipped']
  for (const kind of KINDS) {
    const own = tests.filter((test) => test.kind === kind)
    const cells = [own.length, ...outcomes.map((outcome) => count(own, outcome))]
    console.log(`${kind.padEnd(12)}${cells.map((cell) => String(cell).padStart(9)).join('')}`)
  }
  const reasons = new Map()
  for (const test of tests.filter((each) => each.outcome === 'skipped')) {
    reasons.set(test.reason, (reasons.get(test.reason) ?? 0) + 1)
  }
  for (const [reason, times] of reasons) console.log(`skipped ${times}: ${reason}`)
  console.log(`${results.length} files in ${seconds.toFixed(0)} s`)
  console.log(outcomes.map((outcome) => `${count(tests, outcome)} ${outcome}`).join(', '))
  return failures.length === 0 && tests.length > 0
}

async function main() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      list: { type: 'boolean' },
      kind: { type: 'string' },
      results: { type: 'string' },
      property: { type: 'boolean' },
      runs: { type: 'string' },
      seed: { type: 'string' },
      path: { type: 'string' },
    },
  })
  const property = values.property ? propertyEnv(values) : undefined
  const files = collect().filter((file) =>
    file === LAST
      ? property === undefined
      : (positionals.length === 0 || positionals.some((part) => file.includes(part))) &&
        (values.kind === undefined || kindOfFile(file) === values.kind) &&
        (property === undefined || holdsProperty(file)),
  )
  if (values.list) {
    for (const file of files) console.log(`${kindOfFile(file)} ${file}`)
    return 0
  }
  const folder = mkdtempSync(join(tmpdir(), 'namegate-test-'))
  const started = performance.now()
  try {
    const modules = await compileModules({ isProperty: property !== undefined })
    const results = await runAll(files, { folder, modules, property })
    if (values.results !== undefined) writeResults(values.results, results)
    return summarize(results, (performance.now() - started) / 1000) ? 0 : 1
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.once(signal, () => {
    for (const child of running) endGroup(child, 'SIGTERM')
    setTimeout(() => process.exit(130), 3000)
  })
}
process.exitCode = await main()
