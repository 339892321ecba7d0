// Runs the tests and counts them by kind. The files are compiled once (test-modules.mjs). Each has a process of its own or shares one
// with others of its folder (test-order.mjs), and runs in one of several lanes (test-lanes.mjs). Behind them all is whether the conformance
// table agrees with what ran.
// Ends with a table by kind and, as the very last line, `N passed, N failed, N skipped`. Exit 1 on any failure.
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { runInLanes } from './test-lanes.mjs'
import { compileModules } from './test-modules.mjs'
import { inProcesses, keepSeconds } from './test-order.mjs'
import { endAll, indent, runFiles } from './test-process.mjs'
import { inSources } from './test-stacks.mjs'
import { KINDS, kindOfFile, WHOLE } from './test-results.mjs'

const USAGE = `Usage: npm test [-- OPTION... PART...]
       npm run property [-- --runs Nx] [--seed SEED [--path PATH]] [PART...]
Runs all test files, or those whose path contains a PART. Exit code: 0; 1 if a test failed or none ran; 2 for wrong usage.

  --list          lists the files and runs none
  --kind KIND     runs the files of one kind: ${KINDS.join(', ')}
  --bail          ends at the first failure
  --results FILE  also writes every test with its outcome, as JSON
  --rank          keeps how long each file of a whole run took, which orders the later runs
  --runs Nx       tries each property N times as often as npm test
  --seed, --path  replay the failure that names them

Example: npm test -- policy/load
CONTRIBUTING.md lists the variables of longer runs.
`

const OPTIONS = {
  list: { type: 'boolean' },
  kind: { type: 'string' },
  bail: { type: 'boolean', default: false },
  rank: { type: 'boolean' },
  results: { type: 'string' },
  property: { type: 'boolean' },
  runs: { type: 'string' },
  seed: { type: 'string' },
  path: { type: 'string' },
  help: { type: 'boolean', short: 'h' },
}

/** Runs behind all others, with their results in the file that NAMEGATE_RESULTS names. */
const LAST = 'test/conformance/ran.test.ts'

function collect() {
  return readdirSync('test', { recursive: true })
    .map((path) => join('test', path))
    .filter((path) => path.endsWith('.test.ts'))
    .sort()
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

function show({ file, seconds, output, tests, notes }, isLong, modules) {
  const failed = failuresOf({ tests })
  const count = (outcome) => tests.filter((test) => test.outcome === outcome).length
  const skipped = count('skipped') > 0 ? `, ${count('skipped')} skipped` : ''
  console.log(
    `${failed.length > 0 ? 'FAIL' : 'ok  '}  ${file}  ${count('passed')} passed${skipped}  ${seconds.toFixed(1)} s`,
  )
  for (const note of notes) console.log(`      ${note}`)
  for (const test of isLong ? tests.filter((each) => each.milliseconds >= 50) : [])
    console.log(`      ${(test.milliseconds / 1000).toFixed(1).padStart(8)} s  ${test.name}`)
  for (const test of failed)
    console.log(`   x  ${test.name}\n${indent(inSources(test.error, modules))}`)
  if (failed.length > 0 && output.trim() !== '')
    console.log(`   output:\n${indent(inSources(output.slice(-8000), modules))}`)
}

function failuresOf({ tests }) {
  return tests.filter(({ outcome }) => outcome === 'failed')
}

/**
 * After a process of several files broke down: what one file did `alone`, unless it had failed in `shared`. That the process was at
 * this file when it ended counts only where no file breaks down alone.
 */
function withShared(alone, shared, all) {
  const isFound = all.some((part) => failuresOf(part).some(({ name }) => name === WHOLE))
  const failures = shared === undefined ? [] : failuresOf(shared)
  return failures.some(({ name }) => name !== WHOLE || !isFound) ? shared : alone
}

async function runAll(files, place) {
  const { folder, isBail, property } = place
  const results = []
  let isOver = false
  const run = async (sharing, more, isBehind = false) => {
    const { parts, ended } = await runFiles(sharing, { ...place, isBehind }, more)
    const own = ended === undefined || sharing.length === 1 ? parts : await runAlone(sharing, parts)
    for (const part of own) show(part, property !== undefined, place.modules)
    results.push(...own)
    isOver ||= isBail && own.some((part) => failuresOf(part).length > 0)
  }
  const runAlone = async (sharing, shared) => {
    const alone = []
    for (const file of sharing) alone.push(...(await runFiles([file], place)).parts)
    return alone.map((part, i) => withShared(part, shared[i], alone))
  }
  const others = files.filter((file) => file !== LAST)
  const queue = property === undefined ? inProcesses(others) : others.map((file) => [file])
  const start = async (sharing, isBehind) => await run(sharing, {}, isBehind)
  await runInLanes(queue, start, () => isOver)
  if (others.length > 0 && files.includes(LAST) && !isBail) {
    const path = join(folder, 'results.json')
    writeResults(path, results)
    await run([LAST], { NAMEGATE_RESULTS: path })
  }
  return results
}

function writeResults(path, results) {
  writeFileSync(path, JSON.stringify(results.flatMap(({ tests }) => tests)))
}

function summarize(results, seconds) {
  const tests = results.flatMap((result) => result.tests)
  const failures = failuresOf({ tests })
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

/** The options and the parts of paths. Undefined for wrong usage, after its reason. */
function readArgs() {
  try {
    const { values, positionals } = parseArgs({ allowPositionals: true, options: OPTIONS })
    if (!positionals.includes('')) return { values, positionals }
    console.error('An empty PART would choose all files: leave it out')
  } catch (error) {
    console.error(error.message)
  }
  return undefined
}

async function main() {
  const read = readArgs()
  if (read === undefined) return 2
  const { values, positionals } = read
  if (values.help) {
    process.stdout.write(USAGE)
    return 0
  }
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
    const results = await runAll(files, { folder, modules, isBail: values.bail, property })
    if (values.results !== undefined) writeResults(values.results, results)
    if (values.rank && positionals.length === 0) keepSeconds(results)
    return summarize(results, (performance.now() - started) / 1000) ? 0 : 1
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.once(signal, () => {
    endAll()
    setTimeout(() => process.exit(130), 3000)
  })
}
process.exitCode = await main()
