// Checks the kernel of `namegate doctor`: version, features and modules that the configured datapath and listeners need, and capabilities.

import type { Config } from '../../config/config.ts'
import { Findings, isTransparent, type Check, type Examined, type Finding } from './finding.ts'
import type { Capability, KernelPart } from './machine.ts'

/** The oldest kernel of each datapath (README.md). */
const OLDEST = { ebpf: [5, 8], nftables: [5, 13] } as const

export const checkKernel: Check = ({ machine, config }) => {
  const finding = new Findings('kernel')
  const { kind } = config.datapath
  const { release } = machine
  if (kind === 'memory') {
    return [finding.ok(`${release}; the memory datapath needs nothing, and enforces nothing`)]
  }
  const [major, minor] = OLDEST[kind]
  const needs = `datapath ${kind} needs ${major}.${minor} or newer`
  const isNew = machine.isAtLeast(major, minor)
  if (isNew === undefined) return [finding.unchecked(`cannot read the version; ${needs}`)]
  if (isNew) return [finding.ok(`${release}; ${needs}`)]
  const remedy =
    kind === 'nftables' && machine.isAtLeast(...OLDEST.ebpf) === true
      ? 'install a newer kernel, or set datapath.kind: ebpf'
      : 'install a newer kernel'
  return [finding.problem(`${release}; ${needs}`, remedy)]
}

interface Feature {
  readonly check: string
  readonly parts: readonly KernelPart[]
  /** True if the configuration does not work without the parts. */
  readonly isNeeded: (config: Config) => boolean
}

const hasEbpf = ({ datapath }: Config): boolean => datapath.kind === 'ebpf'
const hasNftables = (config: Config): boolean =>
  config.datapath.kind === 'nftables' || isTransparent(config)
const hasMode =
  (wanted: string) =>
  ({ listeners }: Config): boolean =>
    listeners.some(({ mode }) => mode === wanted)

const FEATURES: readonly Feature[] = [
  {
    check: 'bpf',
    parts: [{ option: 'BPF_SYSCALL' }, { option: 'CGROUP_BPF' }],
    isNeeded: hasEbpf,
  },
  {
    check: 'tc',
    parts: [
      { option: 'NET_SCH_INGRESS', module: 'sch_ingress' },
      { option: 'NET_CLS_BPF', module: 'cls_bpf' },
      { option: 'NET_CLS_ACT' },
    ],
    isNeeded: hasEbpf,
  },
  {
    check: 'nftables',
    parts: [
      { option: 'NF_TABLES', module: 'nf_tables' },
      { option: 'NF_TABLES_INET', module: 'nf_tables' },
      { option: 'NFT_CT', module: 'nft_ct' },
      { option: 'NFT_LOG', module: 'nft_log' },
    ],
    isNeeded: hasNftables,
  },
  {
    check: 'conntrack',
    parts: [
      { option: 'NF_CONNTRACK', module: 'nf_conntrack' },
      { option: 'NF_CT_NETLINK', module: 'nf_conntrack_netlink' },
    ],
    isNeeded: hasNftables,
  },
  {
    check: 'tproxy',
    parts: [{ option: 'NFT_TPROXY', module: 'nft_tproxy' }],
    isNeeded: hasMode('tproxy'),
  },
  {
    check: 'redirect',
    parts: [
      { option: 'NFT_REDIR', module: 'nft_redir' },
      { option: 'NFT_NAT', module: 'nft_nat' },
    ],
    isNeeded: hasMode('redirect'),
  },
  {
    check: 'redirect, cgroup',
    parts: [{ option: 'NFT_SOCKET', module: 'nft_socket' }],
    isNeeded: ({ listeners }) => listeners.some(({ processes }) => processes === 'cgroups'),
  },
]

export const checkFeatures: Check = (examined) =>
  FEATURES.map((feature) => judgeFeature(examined, feature))

function judgeFeature({ machine, config }: Examined, feature: Feature): Finding {
  const { check, parts } = feature
  const finding = new Findings(check)
  const isNeeded = feature.isNeeded(config)
  const missing = parts.filter((part) => machine.has(part) === false)
  const unknown = parts.filter((part) => machine.has(part) === undefined)
  const names = (list: readonly KernelPart[]): string =>
    [...new Set(list.map(({ option, module }) => module ?? `CONFIG_${option}`))].join(' ')
  if (missing.length > 0) {
    const found = `the kernel lacks ${names(missing)}`
    if (!isNeeded) return finding.ok(`${found}; this configuration needs none of it`)
    const options = missing.map(({ option }) => `CONFIG_${option}`).join(', ')
    return finding.problem(
      found,
      `install the modules of this kernel, or a kernel with ${options}; then: modprobe -a ${names(missing)}`,
    )
  }
  if (unknown.length > 0 && isNeeded) {
    return finding.unchecked(`no file says if the kernel has ${names(unknown)}`)
  }
  return finding.ok(unknown.length > 0 ? 'not needed' : `the kernel has ${names(parts)}`)
}

/** A cgroup hook needs the hierarchy of version 2 (cgroups(7)). */
export const checkCgroups: Check = ({ machine, config }) => {
  const finding = new Findings('cgroup v2')
  const mounts = machine.read('/proc/self/mounts')
  if (mounts === undefined) return [finding.unchecked('cannot read /proc/self/mounts')]
  const [, path] = /^\S+ (\S+) cgroup2 /m.exec(mounts) ?? []
  if (path !== undefined) return [finding.ok(`mounted at ${path}`)]
  if (!hasEbpf(config)) return [finding.ok('not mounted; this configuration does not need it')]
  return [
    finding.warning(
      'not mounted: endpoints whose hook is a cgroup cannot be enforced',
      'mkdir -p /sys/fs/cgroup && mount -t cgroup2 cgroup2 /sys/fs/cgroup',
    ),
  ]
}

/** The capabilities that the daemon needs. CAP_SYS_ADMIN has those of CAP_BPF and CAP_PERFMON. */
export const checkPrivileges: Check = ({ machine, config, status }) => {
  const finding = new Findings('privileges')
  const needs = neededCapabilities(config, machine.number(UNPRIVILEGED) ?? PRIVILEGED_PORTS)
  if (machine.capabilities === undefined)
    return [finding.unchecked('cannot read /proc/self/status')]
  const missing = needs.filter((name) => !machine.can(name) && !isReplaced(machine, name))
  if (needs.length === 0) return [finding.ok('this configuration needs no capability')]
  if (missing.length === 0) return [finding.ok(`this user has ${needs.join(' ')}`)]
  const found = `this user lacks ${missing.join(' ')}`
  if (status !== undefined) return [finding.ok(`${found}; the daemon runs as another user`)]
  const isRoot = process.geteuid?.() === 0
  return isRoot
    ? [
        finding.problem(
          found,
          `give them to the container or service, such as: CapabilityBoundingSet=${missing.join(' ')}`,
        ),
      ]
    : [finding.warning(`${found}: the daemon cannot run as this user`, 'run the daemon as root')]
}

const UNPRIVILEGED = '/proc/sys/net/ipv4/ip_unprivileged_port_start'
const PRIVILEGED_PORTS = 1024

function neededCapabilities(config: Config, firstFreePort: number): readonly Capability[] {
  const needs = new Set<Capability>()
  if (hasEbpf(config)) for (const name of ['CAP_BPF', 'CAP_PERFMON'] as const) needs.add(name)
  if (hasEbpf(config) || hasNftables(config)) needs.add('CAP_NET_ADMIN')
  if (isTransparent(config)) needs.add('CAP_NET_RAW').add('CAP_NET_BIND_SERVICE')
  if (config.listeners.some(({ port }) => port !== 0 && port < firstFreePort)) {
    needs.add('CAP_NET_BIND_SERVICE')
  }
  return [...needs]
}

function isReplaced(machine: Examined['machine'], name: Capability): boolean {
  return (name === 'CAP_BPF' || name === 'CAP_PERFMON') && machine.can('CAP_SYS_ADMIN')
}
