// Which test files share a process, which run at the same time, and in which order.

import { readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { kindOfFile } from './test-results.mjs'

/** Shown first, because a fault there is the quickest to repair. */
const FIRST = 'style'

/** Files and folders that take longest, the longest first. They start before the others, so that no lane waits for them at the end. */
const LONGEST = [
  'ebpf',
  'image',
  'sanitize',
  'ipcache-model',
  'take-over',
  'proxy',
  'outlive',
  'crashes',
  'nftables-foreign',
  'identity-budget',
  'flow-shares',
  'intercept-tproxy',
  'intercept-bridge',
  'hooks',
  'break-glass-ebpf',
  'break-glass-nftables',
  'explicit',
  'free-port',
  'original-destination',
  'intercept-repair',
  'cilium-examples',
  'change-redirect-nftables',
  'change-tproxy-ebpf',
  'failover',
  'first-packet',
  'intercept-own-port',
  'intercept-alone',
  'state-refused',
  'package',
  'state-removed',
  'settling',
  'scenarios',
  'bin',
  'hold',
  'policy-transition',
]

/** Folders whose files run in one process for each folder, because they load the same modules and change nothing of their process. */
const SHARED = new Set(
  'core datapath dns documents enforcement explain flows identity ipcache lint names policy proxy reconcile restore semantics suggest telemetry'.split(
    ' ',
  ),
)
/** In a file that needs a process of its own: hooks would be those of every file after it. */
const OWN =
  /\b(?:before|after|beforeEach|afterEach|mock)\b[^}]*\} from 'node:test'|node:child_process|support\/labs\/|\bprocess\.(?:on|once|exit|exitCode|chdir|env)\b/

/** Files -> lists of files that one process runs, the longest first. */
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
  return processes.sort((a, b) => rankOf(a) - rankOf(b))
}

function rankOf(files) {
  const name = files.length > 1 ? files[0].split('/')[1] : basename(files[0], '.test.ts')
  if (name === FIRST) return -1
  const rank = LONGEST.indexOf(name)
  return rank === -1 ? LONGEST.length : rank
}

/** Whether a file makes network namespaces: such files wait more than they compute, and come after the others. */
export function isKernel(file) {
  return ['conformance', 'kernel'].includes(kindOfFile(file))
}
