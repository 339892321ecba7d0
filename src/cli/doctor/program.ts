// Checks for `namegate doctor` the program itself, its configuration and policies, the running daemon, and the clock.

import type { Config } from '../../config/config.ts'
import { defaultConfig } from '../../config/load.ts'
import { formatFault, InvalidInputError, messageOf } from '../../core/errors.ts'
import { isBuilt, loadPosix } from '../../native/native.ts'
import { VERSION } from '../../version.ts'
import { DEFAULT_SOCKET } from '../../client/default-socket.ts'
import { findConfigFile, readConfig } from '../config-file.ts'
import { listOf, textOf } from '../fields.ts'
import { program } from '../program.ts'
import { hasServiceUnit } from '../service-unit.ts'
import { shellWord } from '../shell-word.ts'
import { Findings, isTransparent, type Check, type Finding } from './finding.ts'

/** Reads the configuration as other commands do. With faults, or without a file, the other checks assume the defaults. */
export async function readConfiguration(
  option: string | undefined,
): Promise<{ readonly config: Config; readonly findings: readonly Finding[] }> {
  const finding = new Findings('configuration')
  const file = findConfigFile(option)
  try {
    const config = await readConfig(option)
    if (file !== undefined) return { config, findings: [finding.ok(file)] }
    const found = 'found none: the checks assume the built-in defaults, which enforce nothing'
    const remedy = 'give --config FILE, or write /etc/namegate/namegate.yaml'
    return { config, findings: [finding.warning(found, remedy)] }
  } catch (error) {
    if (!(error instanceof InvalidInputError)) throw error
    const [first] = error.faults
    const more = error.faults.length > 1 ? ` (and ${error.faults.length - 1} more)` : ''
    const found = `${first === undefined ? messageOf(error) : formatFault(first)}${more}`
    const config = { ...defaultConfig(), admin: { socket: DEFAULT_SOCKET } }
    return {
      config,
      findings: [
        finding.problem(
          `${found}; the other checks assume the defaults`,
          `${program()} config check ${file === undefined ? '' : shellWord(file)}`.trim(),
        ),
      ],
    }
  }
}

type Addon = Parameters<typeof isBuilt>[0]

export const checkProgram: Check = ({ config }) => {
  const finding = new Findings('program')
  const needed = new Set<Addon>(['posix', 'tcp', 'udp'])
  if (config.datapath.kind === 'ebpf') needed.add('bpf')
  if (config.datapath.kind === 'nftables') needed.add('nftables').add('conntrack')
  if (isTransparent(config)) needed.add('conntrack')
  const missing = [...needed].filter((name) => !isBuilt(name))
  const version = `namegate ${VERSION}, Node.js ${process.version}`
  if (missing.length === 0) return [finding.ok(version)]
  return [
    finding.problem(
      `${version}; the native parts ${missing.join(', ')} are not built`,
      'apt-get install gcc libc6-dev libuv1-dev clang libbpf-dev, then: npm run build',
    ),
  ]
}

export const checkDaemon: Check = ({ status, config }) => {
  const finding = new Findings('daemon')
  if (status === undefined) {
    const found = `none answers at ${config.admin.socket}`
    const service = hasServiceUnit() ? 'systemctl start namegate, or: ' : ''
    return [finding.warning(found, `${service}${program()} run`)]
  }
  const { version, pid, ready, mode } = status
  const who = `version ${textOf(version)}, pid ${textOf(pid)}`
  if (ready !== true) {
    const reasons = listOf(status.notReady).map(textOf).join('; ')
    return [finding.problem(`${who}, is not ready: ${reasons}`, `${program()} status`)]
  }
  const findings: Finding[] = []
  if (version !== VERSION) {
    findings.push(
      finding.warning(
        `${who}, and this program is version ${VERSION}`,
        `systemctl reload namegate (with take-over.conf), or: ${program()} run --take-over`,
      ),
    )
  }
  if (mode !== 'enforce') {
    const remedy = `${program()} audit reset --node; ${program()} datapath mode enforce`
    findings.push(finding.warning(`${who}: its mode is ${textOf(mode)}`, remedy))
  }
  for (const warning of listOf(status.warnings)) findings.push(finding.warning(textOf(warning)))
  if (listOf(status.faults).length > 0) {
    const found = `${listOf(status.faults).length} faults in files of policies or endpoints`
    findings.push(finding.problem(found, `${program()} status`))
  }
  return findings.length > 0 ? findings : [finding.ok(`${who}, ready, mode ${textOf(mode)}`)]
}

/** Lifetimes of addresses continue over a restart by the time of day. */
export const checkClock: Check = () => {
  const finding = new Findings('clock')
  if (!isBuilt('posix')) return [finding.unchecked('the native part posix is not built')]
  const state = loadPosix().clockSynchronized()
  if (state < 0) return [finding.unchecked('the kernel does not say if the clock is synchronised')]
  if (state === 1) return [finding.ok('synchronised')]
  return [
    finding.warning(
      'not synchronised: saved lifetimes can be wrong after a restart, and times of flows differ between nodes',
      'timedatectl set-ntp true, or: apt-get install chrony',
    ),
  ]
}
