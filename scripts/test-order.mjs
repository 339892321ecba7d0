// Which test files share a process, which run at the same time, and in which order.

import { readFileSync, writeFileSync } from 'node:fs'
import { basename } from 'node:path'
import { kindOfFile } from './test-results.mjs'

/** Shown first, because a fault there is the quickest to repair. */
const FIRST = 'style'

/** Processes that take longest (a file, or a folder whose files share one) -> seconds, as a whole run with --rank measured them. */
const SECONDS_FILE = new URL('./test-seconds.json', import.meta.url)
const SECONDS = JSON.parse(readFileSync(SECONDS_FILE, 'utf8'))
const SECONDS_LEAST = 5

/** Folders whose files run in one process for each folder, because they load the same modules and change nothing of their process. */
const SHARED = new Set(
  (
    'admin cli config core datapath dns documents endpoints enforcement explain flows identity ipcache kubernetes lint names policy ' +
    'proxy reconcile restore sandbox semantics sources state suggest telemetry'
  ).split(' '),
)
/** In a file that needs a process of its own: hooks would be those of every file after it. */
const OWN =
  /\b(?:before|after|beforeEach|afterEach|mock)\b[^}]*\} from 'node:test'|node:child_process|support\/labs\/|\bprocess\.(?:on|once|exit|exitCode|chdir|env)\b/

/** Files -> lists of files that one process runs, the longest first, so that no lane waits for it at the end. */
export function inProcesses(files) {
  const shared = new Map()
  const processes = []
  for (const file of files) {
    const [, folder] = file.split('/')
    if (!SHARED.has(folder) || OWN.test(readFileSync(file, 'utf8'))) {
      processes.push([file])
    } else if (shared.has(folder)) {
      shared.get(folder).push(file)
    } else {
      shared.set(folder, [file])
      processes.push(shared.get(folder))
    }
  }
  const first = processes.filter((own) => basename(own[0], '.test.ts') === FIRST)
  const others = processes.filter((own) => !first.includes(own))
  const secondsOf = (own) => SECONDS[titleOf(own)] ?? 0
  return [...first, ...others.sort((a, b) => secondsOf(b) - secondsOf(a))]
}

function titleOf(files) {
  const [first] = files
  return files.length === 1 ? first : `${first.split('/', 2).join('/')}/`
}

/** Keeps how long the processes of a whole run took, for the order of the runs to come. */
export function keepSeconds(results) {
  const took = new Map(results.map(({ file, seconds }) => [file, seconds]))
  const sums = inProcesses([...took.keys()]).map((own) => [
    titleOf(own),
    Math.round(own.reduce((sum, file) => sum + took.get(file), 0)),
  ])
  const longest = sums.filter(([, seconds]) => seconds >= SECONDS_LEAST)
  const ranked = Object.fromEntries(longest.sort(([, a], [, b]) => b - a))
  writeFileSync(SECONDS_FILE, `${JSON.stringify(ranked, undefined, 2)}\n`)
}

/** Whether a file makes network namespaces: such files wait more than they compute, and come after the others. */
export function isKernel(file) {
  return ['conformance', 'kernel'].includes(kindOfFile(file))
}
