// Checks the limits of `namegate doctor`: open files, locked memory, connection tracking and receive buffers. Limits of a process are those
// of the running daemon, else those of the doctor itself.

import { Findings, isTransparent, type Check, type Examined } from './finding.ts'

/** Open files besides TCP connections and sockets for replies: listeners, upstream sockets, maps, files. */
const OTHER_FILES = 1024
/** Shares of a table that are in use, in percent. */
const NEARLY_FULL = 80
const FULL = 95
/** The receive buffer of a listener in octets (proxy/sockets/udp-listener.ts). */
const RECEIVE_BUFFER = 8 * 1024 * 1024

export const checkOpenFiles: Check = (examined) => {
  const finding = new Findings('open files')
  const { limits } = examined.config
  const needs = limits['tcp-connections'] + limits['reply-sockets'] + OTHER_FILES
  const limit = limitOf(examined, 'Max open files')
  if (limit === undefined) return [finding.unchecked('cannot read the limits of the process')]
  // Node.js raises its soft limit to the hard limit.
  if (limit >= needs)
    return [finding.ok(`the limit is ${textOf(limit)}, at most ${needs} are needed`)]
  return [
    finding.warning(
      `the limit is ${limit}, and with all limits of the configuration in use ${needs} are needed`,
      `LimitNOFILE=${needs} in the unit, or: ulimit -n ${needs}`,
    ),
  ]
}

export const checkLockedMemory: Check = (examined) => {
  const finding = new Findings('locked memory')
  const { machine, config } = examined
  if (config.datapath.kind !== 'ebpf') return [finding.ok('not needed without datapath ebpf')]
  if (machine.isAtLeast(5, 11) === true) return [finding.ok('this kernel counts maps by cgroup')]
  const limit = limitOf(examined, 'Max locked memory')
  if (limit === undefined) return [finding.unchecked('cannot read the limits of the process')]
  if (limit === Infinity) return [finding.ok('unlimited')]
  return [
    finding.problem(
      `the limit is ${limit} octets, which is too small for the maps on kernels before 5.11`,
      'LimitMEMLOCK=infinity in the unit, or: ulimit -l unlimited',
    ),
  ]
}

export const checkConnectionTable: Check = ({ machine, config }) => {
  const finding = new Findings('connections')
  const folder = '/proc/sys/net/netfilter'
  const max = machine.number(`${folder}/nf_conntrack_max`)
  const count = machine.number(`${folder}/nf_conntrack_count`)
  if (max === undefined || count === undefined || max === 0) {
    const isUsed = config.datapath.kind === 'nftables' || isTransparent(config)
    const found = 'the connection table of the kernel cannot be seen from here'
    return [isUsed ? finding.unchecked(found) : finding.ok(`${found}, and is not needed`)]
  }
  const percent = Math.round((count / max) * 100)
  const found = `${count} of ${max} tracked connections are in use`
  if (percent < NEARLY_FULL) return [finding.ok(found)]
  const remedy = `sysctl -w net.netfilter.nf_conntrack_max=${max * 2}`
  return [percent >= FULL ? finding.problem(found, remedy) : finding.warning(found, remedy)]
}

export const checkReceiveBuffer: Check = ({ machine, config, status }) => {
  const finding = new Findings('receive buffer')
  const hasAdmin = config.datapath.kind !== 'memory' || isTransparent(config)
  if (hasAdmin || machine.can('CAP_NET_ADMIN') || status !== undefined) {
    return [finding.ok('CAP_NET_ADMIN sets it without a limit')]
  }
  const max = machine.number('/proc/sys/net/core/rmem_max')
  if (max === undefined) return [finding.unchecked('cannot read net.core.rmem_max')]
  if (max >= RECEIVE_BUFFER) return [finding.ok(`net.core.rmem_max is ${max}`)]
  return [
    finding.warning(
      `net.core.rmem_max is ${max}: a burst of queries over UDP can be lost`,
      `sysctl -w net.core.rmem_max=${RECEIVE_BUFFER}`,
    ),
  ]
}

/** The hard limit of the daemon, or of this process. Undefined if it cannot be read. */
function limitOf({ machine, status }: Examined, name: string): number | undefined {
  const pid = typeof status?.pid === 'number' ? status.pid : undefined
  const text =
    (pid === undefined ? undefined : machine.read(`/proc/${pid}/limits`)) ??
    machine.read('/proc/self/limits')
  const line = text?.split('\n').find((each) => each.startsWith(name))
  const [, hard] = /^\s+\S+\s+(\S+)/.exec(line?.slice(name.length) ?? '') ?? []
  if (hard === undefined) return undefined
  return hard === 'unlimited' ? Infinity : Number(hard)
}

function textOf(limit: number): string {
  return limit === Infinity ? 'unlimited' : String(limit)
}
