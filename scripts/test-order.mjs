// Which test files share a process, which run at the same time, and in which order.

import { readFileSync, writeFileSync } from 'node:fs'
import { basename } from 'node:path'
import { kindOfFile } from './test-results.mjs'

/** Shown first, because a fault there is the quickest to repair. */
const FIRST = 'style'

/** Files that take longest -> seconds, as a whole run with --rank measured them. */
const SECONDS_FILE = new URL('./test-seconds.json', import.meta.url)
const SECONDS = JSON.parse(readFileSync(SECONDS_FILE, 'utf8'))
const SECONDS_LEAST = 3
/** Of each file that takes less than SECONDS_LEAST. */
const SECONDS_OTHER = 1

/**
 * Files of a folder share a process, because the start of a process takes longer than most files: as many as take this long together.
 * A longer process would be alone at the end of the run.
 */
const SHARED_SECONDS = 45
/** In a file that needs a process of its own, because every file after it would be in the namespace or folder that it enters. */
const OWN =
  /\bmock\b[^}]*\} from 'node:test'|\bprocess\.(?:on|once|exit|exitCode|chdir)\b|process\.env\[[^\]]*\] = |\bunshareNetwork\(\)/

/** Files -> lists of files that one process runs, the longest first, so that no lane waits for it at the end. */
export function inProcesses(files) {
  const shared = new Map()
  const processes = []
  for (const file of files) {
    const folder = folderOf(file)
    const isOwn = folder === 'test' || OWN.test(readFileSync(file, 'utf8'))
    const open = isOwn ? [] : (shared.get(folder) ?? [])
    const fitting = open.find((own) => secondsOf([...own, file]) <= SHARED_SECONDS)
    if (fitting !== undefined) {
      fitting.push(file)
    } else {
      const own = [file]
      processes.push(own)
      if (!isOwn) shared.set(folder, [...open, own])
    }
  }
  const first = processes.filter((own) => basename(own[0], '.test.ts') === FIRST)
  const others = processes.filter((own) => !first.includes(own))
  return [...first, ...others.sort((a, b) => secondsOf(b) - secondsOf(a))]
}

/** The folder of a kernel test is below test/kernel/. */
function folderOf(file) {
  const depth = file.startsWith('test/kernel/') ? 3 : 2
  return file.split('/').slice(0, -1).slice(0, depth).join('/')
}

function secondsOf(files) {
  return files.reduce((sum, file) => sum + (SECONDS[file] ?? SECONDS_OTHER), 0)
}

/** Keeps how long the files of a whole run took, for the order of the runs to come. */
export function keepSeconds(results) {
  const longest = results
    .map(({ file, seconds }) => [file, Math.round(seconds)])
    .filter(([, seconds]) => seconds >= SECONDS_LEAST)
  const ranked = Object.fromEntries(longest.sort(([, a], [, b]) => b - a))
  writeFileSync(SECONDS_FILE, `${JSON.stringify(ranked, undefined, 2)}\n`)
}

/** Whether a file makes network namespaces: such files wait more than they compute, and come after the others. */
export function isKernel(file) {
  return ['conformance', 'kernel'].includes(kindOfFile(file))
}

/**
 * Folders and files whose tests compute, and do not wait for times: they can stay behind kernel tests for minutes. No command that they run
 * has a time limit.
 */
const COMPUTING = [
  'cli/completion/',
  'config/',
  'core/',
  'deb.test.ts',
  'dns/',
  'documents/',
  'enforcement/',
  'identity/',
  'names/',
  'policy/',
  'property/',
  'semantics/',
].map((path) => `test/${path}`)

/** It has a server of its own, whose answers count as late when it gets no processor for seconds. */
const WITH_SERVER = 'test/property/live-packets.test.ts'

export function isComputing(files) {
  return files.every(
    (file) => file !== WITH_SERVER && COMPUTING.some((path) => file.startsWith(path)),
  )
}
