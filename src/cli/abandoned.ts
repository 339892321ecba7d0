// `findAbandoned` finds enforcement and interception that a daemon left in the kernel when it died or ended, and that no daemon holds now.
// The workloads then stay as restricted as before, and can ask no name. It looks at the daemons of `namegate up`, whose configurations are
// in /run/namegate, at the pins in bpffs, and at the tables of this network namespace. Pins with a path of `namegate up` can belong to a
// daemon that ran with a configuration of `up --write`. The note of a daemon says whose its pins are, also if the configuration that this
// host should run has the same pin path. It changes nothing.

import { existsSync, readdirSync, readFileSync, realpathSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Config } from '../config/config.ts'
import { DEFAULT_PIN_PATH, UP_PIN_PATH } from '../core/pin-path.ts'
import { configOfPins, hasPins } from '../daemon/noted-pins.ts'
import { TABLE as ENFORCEMENT } from '../datapath/nftables/rules/layout.ts'
import { TABLE as INTERCEPTION } from '../intercept/nft-script.ts'
import type { RunTool } from '../intercept/tools.ts'
import { isBuilt } from '../native/native.ts'
import {
  holderOf,
  interceptionLockFile,
  isLockFree,
  pinLockFile,
  tableLockFile,
} from '../state/lock.ts'
import { isListening } from './find-daemon.ts'
import { program } from './program.ts'
import { hasServiceUnit } from './service-unit.ts'
import { shellWord } from './shell-word.ts'
import { noteIn } from './up/added-lines.ts'
import { configOfList, SOCKET } from './up/files.ts'
import { hasTable } from './up/network.ts'

export interface Abandoned {
  /** What is in force, and whose it was. */
  readonly found: string
  /** Commands that continue or remove it. */
  readonly remedy: string
}

/** The folder with a folder `up-NAME` for each workload of `namegate up`. */
const RUN = '/run/namegate'
/** The tables of namegate in a network namespace, each with the lock of the daemon that keeps it. */
const TABLES = [
  { table: ENFORCEMENT, lockFile: tableLockFile, words: 'nftables rules' },
  { table: INTERCEPTION, lockFile: interceptionLockFile, words: 'rules of interception' },
] as const

/** `config`: of the daemon that this host should run. */
export async function findAbandoned(
  run: RunTool,
  config: Pick<Config, 'file' | 'datapath'>,
): Promise<readonly Abandoned[]> {
  if (!isBuilt('posix')) return []
  const runs = await findAbandonedRuns(run)
  const known = new Set(upRuns().map(({ pinPath }) => pinPath))
  const pins = pinPaths(config).filter(
    (path) => !known.has(path) && hasPins(path) && isLockFree(pinLockFile(path)),
  )
  // A daemon of `up` outside a namespace had the tables of this one. Its remedy removes them.
  const tables = runs.some(({ isInside }) => !isInside) ? [] : await freeTables(run)
  const usual = existsSync(config.file) ? config.file : undefined
  const left = pins.map((path): LeftByDaemon => {
    const noted = configOfPins(path)
    const isOurs = path === config.datapath.pinPath && usual !== undefined
    const isUsual = isOurs && (noted === undefined || noted === realpathSync(usual))
    const file = isUsual ? usual : noted
    return { parts: [`eBPF programs (pins in ${path})`], file, isUsual }
  })
  // Each daemon with eBPF has pins of its own. The tables can belong to any of these daemons, and the remedy of each removes them.
  const [first = { parts: [], file: usual, isUsual: true }, ...more] = left
  const all = [{ ...first, parts: [...first.parts, ...tables] }, ...more]
  return [...runs, ...all.filter(({ parts }) => parts.length > 0).map(ofDaemon)]
}

/** The same for the daemons of `namegate up` alone. */
export async function findAbandonedRuns(run: RunTool): Promise<readonly LeftByRun[]> {
  if (!isBuilt('posix')) return []
  return (await Promise.all(upRuns().map(async (each) => await leftBy(each, run)))).flat()
}

/** The tables of this network namespace for which no process holds the lock. */
async function freeTables(run: RunTool): Promise<readonly string[]> {
  const found = TABLES.map(async ({ table, lockFile, words }) => {
    const isLeft = isLockFree(lockFile()) && (await hasTable(run, undefined, table))
    return isLeft ? [`${words} (table inet ${table})`] : []
  })
  return (await Promise.all(found)).flat()
}

/** A daemon of `namegate up`, by its note and its configuration. */
interface UpRun {
  /** Such as `netns box`. */
  readonly workload: string
  readonly config: string
  readonly socket: string
  /** The command line of `up`. */
  readonly made: string
  /** Path of the network namespace in which the daemon ran. Undefined for that of the host. */
  readonly namespace: string | undefined
  readonly pinPath: string | undefined
}

function upRuns(): readonly UpRun[] {
  return foldersIn(RUN)
    .filter((name) => name.startsWith('up-'))
    .flatMap((name) => {
      const folder = join(RUN, name)
      const note = noteIn(folder)
      if (note === undefined) return []
      // With --write, the list and the configuration are in the folder of the user.
      const config = configOfList(note.list)
      const text = textIn(config)
      const made = /^# Made by: (?:namegate )?(.*)$/m.exec(text)?.[1]
      if (made === undefined) return []
      const namespace = /^# Run it inside the namespace: nsenter --net=(\S+) /m.exec(text)?.[1]
      const pinPath = /pin-path: "?([^\s"}]+)/.exec(text)?.[1]
      const { workload } = note
      return [{ workload, config, socket: join(folder, SOCKET), made, namespace, pinPath }]
    })
}

export interface LeftByRun extends Abandoned {
  /** True if the rules are in a network namespace of their own. */
  readonly isInside: boolean
}

async function leftBy(each: UpRun, run: RunTool): Promise<readonly LeftByRun[]> {
  const { workload, config, socket, made, namespace, pinPath } = each
  if (await isListening(socket)) return []
  const isPinned = pinPath !== undefined && hasPins(pinPath)
  const locks = await tableLocksIn(namespace, run)
  if (!isPinned && locks.length === 0) return []
  const isInside = namespace !== undefined
  if (isRunning(each)) {
    // Without any file it starts or ends.
    if (!existsSync(socket)) return []
    const found = `the daemon of ${workload} runs, and another file took the place of its socket ${socket}`
    const remedy = `remove the file, and the daemon makes its socket again: rm ${shellWord(socket)}`
    return [{ isInside, found, remedy }]
  }
  // A table whose lock is held is that of another daemon.
  if (!isPinned && !locks.some(isLockFree)) return []
  const inside = isInside ? `nsenter --net=${namespace} ` : ''
  const found = `the daemon of ${workload} has ended without cleaning up, and its rules are in force`
  const force = / --write[ =]/.test(made) && !/ --force\b/.test(made) ? ' --force' : ''
  const again = `run it again, and Ctrl-C then removes the rules: ${program()} ${made}${force}`
  const remedy = `${remedyOf(again, inside, shellWord(config))}; rm -rf ${shellWord(dirname(socket))}`
  return [{ isInside, found, remedy }]
}

/** The lock files of the tables of namegate that are in a network namespace. */
async function tableLocksIn(
  namespace: string | undefined,
  run: RunTool,
): Promise<readonly string[]> {
  const found = TABLES.map(async ({ table, lockFile }) =>
    (await hasTable(run, namespace, table)) ? [lockFile(namespace)] : [],
  )
  return (await Promise.all(found)).flat()
}

/**
 * True if the daemon of the run holds its locks. The pins are of this run alone, and so is the namespace of the workload. The tables of this
 * network namespace can be those of another daemon; the lock of interception has the configuration of its holder.
 */
function isRunning({ config, namespace, pinPath }: UpRun): boolean {
  if (pinPath !== undefined) return !isLockFree(pinLockFile(pinPath))
  if (namespace !== undefined) return !isLockFree(tableLockFile(namespace))
  return holderOf(interceptionLockFile())?.about === config
}

/** What a daemon left that was not started by `namegate up`. */
interface LeftByDaemon {
  readonly parts: readonly string[]
  /** The configuration of the daemon. Undefined if it is not known. */
  readonly file: string | undefined
  /** True for the configuration that this host should run, which the service can start. */
  readonly isUsual: boolean
}

function ofDaemon({ parts, file, isUsual }: LeftByDaemon): Abandoned {
  const config = file === undefined ? 'FILE' : shellWord(file)
  const isOfService = (file === undefined || isUsual) && hasServiceUnit()
  const service = isOfService ? ' (or systemctl start namegate)' : ''
  const again = `start the daemon: ${program()} run --config ${config}${service}`
  const whose = file === undefined ? ' (FILE: the configuration of the daemon that made them)' : ''
  return {
    found: `${parts.join(' and ')} in force, and no daemon runs: workloads can ask no name`,
    remedy: `${remedyOf(again, '', config)}${whose}`,
  }
}

function remedyOf(continued: string, inside: string, config: string): string {
  const end = `${inside}${program()}`
  return (
    `to continue, ${continued}; to remove the rules: ` +
    `${end} datapath detach --config ${config}; ${end} intercept down --config ${config}`
  )
}

/** Other pins can belong to a daemon in a container, whose locks cannot be seen from here. */
function pinPaths({ datapath }: Pick<Config, 'datapath'>): readonly string[] {
  const own = datapath.kind === 'ebpf' ? [datapath.pinPath] : []
  const ofUp = foldersIn(dirname(UP_PIN_PATH)).map((name) => join(dirname(UP_PIN_PATH), name))
  const written = ofUp.filter((path) => path.startsWith(UP_PIN_PATH))
  return [...new Set([...own, DEFAULT_PIN_PATH, ...written])]
}

function foldersIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}

function textIn(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}
