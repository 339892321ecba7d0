// Runs test files in a process and reads what it reports. Whatever the files started ends with the process.

import { spawn } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { setPriority } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { moduleOf } from './test-modules.mjs'
import { partEvents, readResults } from './test-results.mjs'

/** Longest run of a process before it is ended, in milliseconds; NAMEGATE_TEST_LIMIT (seconds) for slow machines. */
const LIMIT_MS = Number(process.env.NAMEGATE_TEST_LIMIT ?? 600) * 1000
/** One that stays behind others waits for them, so its limit is so many times as long. */
const BEHIND = 4

/**
 * Of every process. As in bin/namegate, tables are mapped one by one: what glibc keeps of one that was freed, it would clear octet by
 * octet for the next.
 */
const ENV = {
  VALIDATE: '1',
  NAMEGATE_TEST: '1',
  MALLOC_MMAP_THRESHOLD_: '1048576',
  // Node.js reads all these certificates at each start, which takes longer than the rest of the start. No test needs them.
  NODE_EXTRA_CA_CERTS: undefined,
}
const REPORTER = new URL('./test-reporter.mjs', import.meta.url).href
const BAIL = new URL('./test-bail.mjs', import.meta.url).href
const SEVERAL = fileURLToPath(new URL('./test-several.mjs', import.meta.url))

const running = new Set()

function endGroup(child, signal) {
  try {
    process.kill(-child.pid, signal)
  } catch {
    // It has ended by itself.
  }
}

/** The process group counts as one process beside others where the kernel groups by session (`sched_autogroup_enabled`). */
function stayBehind(pid) {
  try {
    setPriority(pid, 10)
    writeFileSync(`/proc/${pid}/autogroup`, '10')
  } catch {
    // It has ended, or the kernel does not group.
  }
}

/** Ends every process that runs. */
export function endAll() {
  for (const child of running) endGroup(child, 'SIGTERM')
}

/**
 * Files that share a process -> seconds, output and results of each that it came to; `ended`: how it ended, when not as it
 * should. Killed with everything it started when it outlives the limit. `folder`: for events. `modules`: the compiled files.
 * `isBail`: the process ends at its first failure. `isBehind`: it takes only what other processes leave of the processors.
 * `property`: the environment of a run of properties, which has no limit and says how far it is. `more`: further environment.
 */
export function runFiles(files, { folder, modules, isBail, isBehind, property }, more) {
  const path = join(folder, `${files[0].replaceAll('/', '_')}.jsonl`)
  const modulePaths = files.map((file) => join(modules, moduleOf(file)))
  const started = performance.now()
  const limitMs = isBehind ? BEHIND * LIMIT_MS : LIMIT_MS
  return new Promise((resolve) => {
    const child = spawn(
      process.execPath,
      [
        '--enable-source-maps',
        `--test-reporter=${REPORTER}`,
        `--test-reporter-destination=${path}`,
        ...(isBail ? ['--import', BAIL] : []),
        ...(files.length === 1
          ? modulePaths
          : [SEVERAL, ...files.map((file, i) => `${file}=${modulePaths[i]}`)]),
      ],
      {
        env: { ...process.env, ...ENV, NAMEGATE_TEST_MODULES: modules, ...property, ...more },
        detached: true,
        stdio: ['ignore', 'pipe', 'pipe'],
      },
    )
    running.add(child)
    if (isBehind) stayBehind(child.pid)
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
      if (property !== undefined) console.log(indent(`${files[0]}: ${bytes}`))
    })
    child.on('exit', (code, signal) => {
      clearTimeout(timer)
      running.delete(child)
      endGroup(child, 'SIGKILL') // what the files left running
      const parts = partEvents(files, readEvents(path))
      const hasFailed = parts.some(({ events }) => events.some(({ type }) => type === 'fail'))
      const ended = hung
        ? `hung: ended after ${limitMs / 1000} s`
        : (signal ?? (code === 0 || (code === 1 && hasFailed) ? undefined : `exit ${code}`))
      const seconds = (performance.now() - started) / 1000
      resolve({ parts: resultsOf(parts, { seconds, output, ended }), ended })
    })
  })
}

/** How the process ended counts for the file that it was at, the last. */
function resultsOf(parts, { seconds, output, ended }) {
  let before = 0
  return parts.map(({ file, events, time }, i) => {
    const isLast = i === parts.length - 1
    const until = isLast ? seconds : time / 1000
    const own = until - before
    before = until
    return { file, seconds: own, output, ...readResults(file, events, isLast ? ended : undefined) }
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

/** A text under the line of a file. */
export function indent(text) {
  return text.trimEnd().replace(/^/gm, '      ')
}
