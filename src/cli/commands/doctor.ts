// `runDoctor` runs `namegate doctor`. Each check looks at one thing that namegate depends on. The command changes nothing, and works without
// root and without a daemon. A check that fails is reported as `unchecked` and does not end the command.

import { existsSync, realpathSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Status } from '../../client/api-types.ts'
import type { Config } from '../../config/config.ts'
import { messageOf, UnavailableError, UsageError } from '../../core/errors.ts'
import type { SocketPlace } from '../../client/transport.ts'
import { ConnectionError } from '../../client/connection-error.ts'
import { toolRunner } from '../../intercept/tools.ts'
import { clientOf } from '../client.ts'
import {
  EXIT_NEGATIVE,
  EXIT_OK,
  toJson,
  type CommandOutput,
  type ParsedArguments,
} from '../command.ts'
import { findConfigFile, givenSocket, namedConfigFile } from '../config-file.ts'
import { program } from '../program.ts'
import { runningBeside } from '../find-daemon.ts'
import { checkEnforcement } from '../doctor/enforcement.ts'
import {
  Findings,
  type Check,
  type Examined,
  type Finding,
  type Result,
} from '../doctor/finding.ts'
import { checkFirewall, checkRouting } from '../doctor/firewall.ts'
import { checkPinPath, checkSocketFolder, checkStateFolder } from '../doctor/folders.ts'
import { checkCgroups, checkFeatures, checkKernel, checkPrivileges } from '../doctor/kernel.ts'
import {
  checkConnectionTable,
  checkLockedMemory,
  checkOpenFiles,
  checkReceiveBuffer,
} from '../doctor/limits.ts'
import { Machine } from '../doctor/machine.ts'
import { checkPorts, checkResolvConf, checkUpstreams, checkWriters } from '../doctor/names.ts'
import { checkClock, checkDaemon, checkProgram, readConfiguration } from '../doctor/program.ts'
import { fieldsOf, type PartOf } from '../fields.ts'
import { shellWord } from '../shell-word.ts'
import { cleanCell, formatTable } from '../table.ts'

/** How long nft or ip can take, and how long the daemon can take to answer. */
const TOOL_MS = 10_000
const DAEMON_MS = 3000

/** Name of each check, and the check. The name is used if the check fails. */
const CHECKS: readonly (readonly [name: string, check: Check])[] = [
  ['program', checkProgram],
  ['daemon', checkDaemon],
  ['kernel', checkKernel],
  ['features', checkFeatures],
  ['cgroup v2', checkCgroups],
  ['privileges', checkPrivileges],
  ['enforcement', checkEnforcement],
  ['firewall', checkFirewall],
  ['routing', checkRouting],
  ['ports', checkPorts],
  ['resolv.conf', checkResolvConf],
  ['NetworkManager', checkWriters],
  ['upstreams', checkUpstreams],
  ['clock', checkClock],
  ['open files', checkOpenFiles],
  ['locked memory', checkLockedMemory],
  ['connections', checkConnectionTable],
  ['receive buffer', checkReceiveBuffer],
  ['state folder', checkStateFolder],
  ['admin socket', checkSocketFolder],
  ['pin path', checkPinPath],
]

export async function runDoctor(read: ParsedArguments, output: CommandOutput): Promise<number> {
  if (read.positionals.length > 0) return read.wrong('doctor takes no argument')
  const option = read.texts.get('config')
  const own = await readConfiguration(option)
  const { status, socket, findings: silent } = await askDaemon(read.texts, own.config)
  const ofDaemon = typeof status?.config === 'string' ? status.config : undefined
  const named = namesOnlySocket(read.texts) ? undefined : namedConfigFile(option)
  const isOfDaemon = named === undefined && ofDaemon !== undefined
  const { config, findings: checked } = isOfDaemon ? await readConfiguration(ofDaemon) : own
  const first = isOfDaemon
    ? [...checked, ...leftOut(read.texts, ofDaemon, socket)]
    : [
        ...own.findings.map((each) => withChoice(each, silent)),
        ...differences(named, ofDaemon, socket),
      ]
  const examined = { machine: new Machine(toolRunner(TOOL_MS)), config, status }
  const checks = silent.length === 0 ? CHECKS : CHECKS.filter(([name]) => name !== 'daemon')
  const rest = await Promise.all(
    checks.map(async ([name, check]) => await run(name, check, examined)),
  )
  const findings = withOneRemedy([...first, ...silent, ...rest.flat()], status === undefined)
  output.stdout(read.texts.has('output') ? toJson(findings) : formatFindings(findings))
  return findings.some(({ result }) => result === 'problem') ? EXIT_NEGATIVE : EXIT_OK
}

/** What a daemon left in the kernel has a remedy that starts this daemon. So no other remedy starts one. */
function withOneRemedy(findings: readonly Finding[], isSilent: boolean): readonly Finding[] {
  const isLeft = findings.some(
    ({ check, result }) => check === 'enforcement' && result === 'problem',
  )
  if (!isSilent || !isLeft) return findings
  return findings.map((each) =>
    each.check === 'daemon' ? { ...each, remedy: 'see enforcement' } : each,
  )
}

/** True if options name a daemon by its socket and name no configuration. Without these options, the environment decides. */
function namesOnlySocket(options: ReadonlyMap<string, string>): boolean {
  if (options.has('socket')) return !options.has('config')
  const config = namedConfigFile(options.get('config'))
  return config === undefined && givenSocket(undefined) !== undefined
}

/** The finding that a configuration was found by its place and is not checked, because the daemon has another. */
function leftOut(
  options: ReadonlyMap<string, string>,
  ofDaemon: string,
  socket: string,
): readonly Finding[] {
  const file = namesOnlySocket(options) ? undefined : findConfigFile(undefined)
  if (file === undefined || isSameFile(file, ofDaemon)) return []
  const found = `${file} is not that of the daemon at ${socket}`
  const remedy = `to check it: ${program()} doctor --config ${shellWord(file)}`
  return [new Findings('configuration').unchecked(found, remedy)]
}

/** Without a configuration and with a daemon that was found but not asked, the remedy is to choose this daemon. */
function withChoice(finding: Finding, silent: readonly Finding[]): Finding {
  if (finding.result !== 'warning' || silent.length === 0) return finding
  return { ...finding, remedy: 'choose a daemon (see daemon), or give --config FILE' }
}

/** The finding that the daemon has another configuration than the checked file. */
function differences(
  checked: string | undefined,
  ofDaemon: string | undefined,
  socket: string,
): readonly Finding[] {
  if (checked === undefined || ofDaemon === undefined || isSameFile(checked, ofDaemon)) return []
  const found = `${checked} is checked, and the daemon at ${socket} has ${ofDaemon}`
  const remedy = `to check the daemon's: ${program()} doctor --config ${shellWord(ofDaemon)} --socket ${shellWord(socket)}`
  return [new Findings('configuration').warning(found, remedy)]
}

function isSameFile(one: string, other: string): boolean {
  const real = (path: string): string => (existsSync(path) ? realpathSync(path) : resolve(path))
  return real(one) === real(other)
}

/** The reply of the daemon, or the finding that says why there is none. Neither if no daemon runs. */
interface Asked {
  readonly status: PartOf<Status> | undefined
  readonly socket: string
  readonly findings: readonly Finding[]
}

/** Asks the daemon at the socket of the options or of the configuration, else the only daemon that runs. */
async function askDaemon(options: ReadonlyMap<string, string>, config: Config): Promise<Asked> {
  const own = { path: config.admin.socket, named: 'of the configuration' }
  const given = givenSocket(options.get('socket'))
  const place = given ?? own
  try {
    return await statusAt(await runningBeside(place, options, () => undefined), given !== undefined)
  } catch (error) {
    if (!(error instanceof UnavailableError)) throw error
    const findings = [new Findings('daemon').warning(messageOf(error))]
    return { status: undefined, socket: place.path, findings }
  }
}

/** `isGiven`: the user named the socket, so the finding names it if no daemon listens there. */
async function statusAt(place: SocketPlace, isGiven: boolean): Promise<Asked> {
  const socket = place.path
  try {
    const client = clientOf(place)
    const { value: answer } = await client.request('GET /v1/status', { timeoutMs: DAEMON_MS })
    return { status: fieldsOf(answer), socket, findings: [] }
  } catch (error) {
    if (!(error instanceof UnavailableError) && !(error instanceof UsageError)) throw error
    const failure = error instanceof ConnectionError ? error.failure : undefined
    if (failure === 'absent' && !isGiven) return { status: undefined, socket, findings: [] }
    const finding = new Findings('daemon')
    const found = messageOf(error)
    if (failure === 'absent') {
      return { status: undefined, socket, findings: [finding.warning(found)] }
    }
    const failed = failure === 'denied' ? finding.unchecked(found) : finding.problem(found)
    return { status: undefined, socket, findings: [failed] }
  }
}

async function run(name: string, check: Check, examined: Examined): Promise<readonly Finding[]> {
  try {
    return await check(examined)
  } catch (error) {
    return [{ check: name, result: 'unchecked', found: messageOf(error) }]
  }
}

/** Marks of the results. */
const WORDS: Readonly<Record<Result, string>> = {
  ok: 'ok',
  warning: 'warning',
  problem: 'PROBLEM',
  unchecked: 'unchecked',
}

/** One line for each finding, and below it the remedy. */
function formatFindings(findings: readonly Finding[]): string {
  const table = formatTable(
    ['RESULT', 'CHECK', 'FOUND'],
    findings.map(({ check, result, found }) => [WORDS[result], check, found]),
  )
  const [titles = '', ...lines] = table.trimEnd().split('\n')
  const indent = ' '.repeat(titles.indexOf('FOUND'))
  const body = findings.map(({ remedy }, i) => {
    const line = `${lines[i] ?? ''}\n`
    return remedy === undefined ? line : `${line}${indent}remedy: ${cleanCell(remedy)}\n`
  })
  return `${titles}\n${body.join('')}\n${summaryOf(findings)}\n`
}

function summaryOf(findings: readonly Finding[]): string {
  const count = (wanted: Result): number =>
    findings.filter(({ result }) => result === wanted).length
  const parts = [
    [count('problem'), 'problem', 'problems'],
    [count('warning'), 'warning', 'warnings'],
    [count('unchecked'), 'check without a result', 'checks without a result'],
  ] as const
  const texts = parts.flatMap(([n, one, many]) => (n === 0 ? [] : [`${n} ${n === 1 ? one : many}`]))
  return texts.length === 0 ? 'no problems' : texts.join(', ')
}
