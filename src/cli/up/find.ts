// `findPlan` looks up the workload that `namegate up` protects, and what this host can do, and then decides (plan-netns.ts, plan-host.ts).
// It changes nothing.

import { existsSync, statfsSync } from 'node:fs'
import { basename, join } from 'node:path'
import { foundNames } from '../../core/did-you-mean.ts'
import { messageOf, UnavailableError } from '../../core/errors.ts'
import { isSameFile } from '../../config/files.ts'
import { systemResolvers } from '../../config/machine.ts'
import { cgroupMount, cgroupPath } from '../../native/cgroup-mount.ts'
import { interfaceRemedy } from '../../endpoints/forwarding.ts'
import type { RunTool } from '../../intercept/tools.ts'
import { nativeFile } from '../../native/native-files.ts'
import { isBuilt, loadBpf } from '../../native/native.ts'
import { interceptionLockFile, isLockFree } from '../../state/lock.ts'
import { shellWord } from '../shell-word.ts'
import type { UpOptions } from './arguments.ts'
import { kernelVersion, readNamespaces, readNetwork, type NamedNamespace } from './network.ts'
import {
  globalAddresses,
  isLocal,
  toName,
  type Abilities,
  type Resolvers,
  type UpEndpoint,
  type UpPlan,
  unusedName,
} from './plan.ts'
import { namespaceBehind, planCgroup, planInterface } from './plan-host.ts'
import { planNetns } from './plan-netns.ts'

/** Where `ip netns` has the named namespaces. */
const NAMESPACES = '/run/netns'
/** NSFS_MAGIC of linux/magic.h. */
const NSFS_MAGIC = 0x6e73_6673
/** Files that name the servers of this host. The later ones have the servers behind a resolver on loopback. */
const RESOLV_CONF = [
  '/etc/resolv.conf',
  '/run/systemd/resolve/resolv.conf',
  '/run/NetworkManager/no-stub-resolv.conf',
] as const

/** Throws UnavailableError with the next step if the workload is not found, or if it cannot be protected here. */
export async function findPlan(options: UpOptions, run: RunTool): Promise<UpPlan> {
  const plan = await planOf(options, run)
  return { ...plan, warnings: [...plan.warnings, ...notForwarding(plan)] }
}

/** Warns if this host does not forward the IPv4 packets of the workload. */
function notForwarding({ endpoints }: UpPlan): readonly string[] {
  const remedies = endpoints.value.flatMap(({ interface: nic, addresses }) =>
    nic?.hook === 'ingress' && addresses.some((each) => !each.includes(':'))
      ? (interfaceRemedy(nic.name) ?? [])
      : [],
  )
  return [...new Set(remedies)].map((each) => `this host does not forward IPv4 packets: ${each}`)
}

async function planOf(options: UpOptions, run: RunTool): Promise<UpPlan> {
  const { kind, value } = options.target
  switch (kind) {
    case 'netns':
      return await findNetns(options, value, run)
    case 'interface':
      return await findInterface(options, value, run)
    case 'cgroup':
      return await findCgroup(options, value, run)
  }
}

async function findNetns(options: UpOptions, value: string, run: RunTool): Promise<UpPlan> {
  const given = value.replace(/^(?:\/var)?\/run\/netns\/(?=[^/]+$)/, '')
  const path = given.includes('/') ? given : join(NAMESPACES, given)
  // The kernel numbers a namespace when an interface that leads there is read. So the interfaces are read first.
  const host = await readNetwork(run)
  const namespaces = await readNamespaces(run)
  if (!isNamespace(path)) throw noNamespace(given, namespaces)
  const inside: UpPlan['inside'] = [
    given.includes('/') ? `nsenter --net=${shellWord(given)} ` : `ip netns exec ${given} `,
    '',
  ]
  const plan = planNetns({
    given,
    name: nameOfNamespace(given),
    path,
    named: namespaces.find(({ name }) => isSameFile(join(NAMESPACES, name), path)),
    host,
    inner: await readNetwork(run, path),
    abilities: abilities(),
    asked: askedIn(given),
    files: hostResolvers(),
    upstreams: options.upstreams,
  })
  return { ...plan, inside, warnings: [...plan.warnings, ...ownNamespace(given, path)] }
}

/** Warns if the namespace is the one in which this process runs. */
function ownNamespace(given: string, path: string): readonly string[] {
  return isSameFile('/proc/self/ns/net', path)
    ? [
        `${given} is the network namespace of this host itself: every process of this host is a workload now`,
      ]
    : []
}

/** True if the file is a namespace of the kernel. The file system of namespaces (nsfs) has no other files. */
function isNamespace(path: string): boolean {
  return existsSync(path) && statfsSync(path).type === NSFS_MAGIC
}

function noNamespace(given: string, namespaces: readonly NamedNamespace[]): UnavailableError {
  const found = foundNames(
    given,
    namespaces.map(({ name }) => name),
  )
  return new UnavailableError(
    `No network namespace ${JSON.stringify(given)}: ${found}\n  ` +
      (given.includes('/')
        ? 'Give the path of one, such as /proc/PID/ns/net.'
        : `Make it with 'ip netns add ${given}', or give the path of another, such as /proc/PID/ns/net.`),
  )
}

/** Returns `box` for box, `pid-12` for /proc/12/ns/net, and the last part of any other path. */
function nameOfNamespace(given: string): string {
  const pid = processOf(given)
  return toName(pid === undefined ? basename(given) : `pid-${pid}`)
}

function processOf(path: string): string | undefined {
  return /^\/proc\/(\d+)\/ns\/net$/.exec(path)?.[1]
}

/** The servers that programs of the namespace ask. `ip netns exec NAME` mounts /etc/netns/NAME/resolv.conf over /etc/resolv.conf. */
function askedIn(given: string): Resolvers {
  const pid = processOf(given)
  const own =
    pid === undefined ? `/etc/netns/${given}/resolv.conf` : `/proc/${pid}/root/etc/resolv.conf`
  const file = existsSync(own) ? own : RESOLV_CONF[0]
  return { file, servers: systemResolvers(file) }
}

async function findInterface(options: UpOptions, name: string, run: RunTool): Promise<UpPlan> {
  const host = await readNetwork(run)
  const nic = host.nics.find((each) => each.name === name)
  const behind = namespaceBehind(nic, await readNamespaces(run))
  const inner =
    behind === undefined ? undefined : await readNetwork(run, join(NAMESPACES, behind.name))
  const end = inner?.nics.find(({ index, kind }) => kind === 'veth' && index === nic?.peer)
  const plan = planInterface({
    name: toName(name),
    interface: name,
    host,
    abilities: abilities(),
    addresses: options.addresses,
    otherEnd: end === undefined ? [] : globalAddresses(end).map(({ address }) => address),
    files: hostResolvers(),
    upstreams: options.upstreams,
  })
  // A query to a server on loopback does not leave the namespace.
  const isAsking = behind !== undefined && !askedIn(behind.name).servers.some(isLocal)
  return isAsking ? { ...plan, inside: [`ip netns exec ${behind.name} `, ''] } : plan
}

async function findCgroup(options: UpOptions, given: string, run: RunTool): Promise<UpPlan> {
  const mount = cgroupMount()
  const inside =
    mount !== undefined && given.startsWith(`${mount}/`) ? given.slice(mount.length) : given
  const found = cgroupPath(mount, inside)
  if (found.kind === 'bad') {
    throw new UnavailableError(
      `Cannot protect cgroup ${given}: ${found.reason}\n  Give another, such as --cgroup system.slice/NAME.service ('systemd-cgls' shows them).`,
    )
  }
  if (!existsSync(found.path)) {
    throw new UnavailableError(
      `No cgroup ${given}: ${found.path} does not exist\n  Make it ('mkdir ${found.path}', or ` +
        `'systemd-run --slice=NAME COMMAND'), and start the processes in it.`,
    )
  }
  const plan = planCgroup({
    name: toName(basename(found.path).replace(/\.(slice|service|scope)$/, '')),
    cgroup: inside.replace(/^\/+|\/+$/g, ''),
    host: await readNetwork(run),
    abilities: abilities(),
    files: hostResolvers(),
    upstreams: options.upstreams,
  })
  const isPlain = shellWord(found.path) === found.path
  return isPlain
    ? { ...plan, inside: [`sh -c 'echo $$ > ${found.path}/cgroup.procs; exec `, "'"] }
    : plan
}

/** The servers of this host. The first file is resolv.conf. */
export function hostResolvers(): readonly Resolvers[] {
  return RESOLV_CONF.map((file) => ({ file, servers: systemResolvers(file) }))
}

/** What `init` finds on this host. */
export interface HostWorkloads {
  /** The workloads behind veth interfaces, as far as their namespaces have names. Each has a name of its own. */
  readonly workloads: readonly UpEndpoint[]
  /** True if no route of this host is a default route. */
  readonly hasNoWayOut: boolean
}

export async function workloadsOfHost(run: RunTool): Promise<HostWorkloads> {
  const host = await readNetwork(run).catch(() => undefined)
  if (host === undefined) return { workloads: [], hasNoWayOut: false }
  const namespaces = await readNamespaces(run).catch(() => [])
  const workloads: UpEndpoint[] = []
  const waysOut = host.routes.filter(({ to }) => to === 'default').map(({ nic }) => nic)
  const inner = host.nics.filter(({ name }) => !waysOut.includes(name))
  for (const nic of inner.slice(0, LISTED_MAX)) {
    const behind = namespaceBehind(nic, namespaces)
    if (behind === undefined) continue
    const inside = await readNetwork(run, join(NAMESPACES, behind.name)).catch(() => undefined)
    const end = inside?.nics.find(({ index }) => index === nic.peer)
    const addresses = end === undefined ? [] : globalAddresses(end).map(({ address }) => address)
    if (addresses.length === 0) continue
    const used = new Set(workloads.map((each) => each.name))
    const name = unusedName(toName(behind.name), used)
    workloads.push({ name, addresses, interface: { name: nic.name, hook: 'ingress' } })
  }
  return { workloads, hasNoWayOut: waysOut.length === 0 }
}

/** How many interfaces `init` looks at. */
const LISTED_MAX = 200

/** What this host can do. */
export function abilities(): Abilities {
  return {
    noEbpf: whyNoEbpf(),
    isIntercepted: isBuilt('posix') && !isLockFree(interceptionLockFile()),
  }
}

const EBPF_KERNEL = [5, 8] as const

function whyNoEbpf(): string | undefined {
  if (!existsSync(nativeFile('namegate.bpf.o'))) return 'its programs are not built'
  try {
    loadBpf()
  } catch (error) {
    // For example without libbpf.
    return messageOf(error)
  }
  const [major, minor] = kernelVersion()
  const [needed, neededMinor] = EBPF_KERNEL
  if (major > needed || (major === needed && minor >= neededMinor)) return undefined
  return `the kernel is ${major}.${minor}, and eBPF needs ${needed}.${neededMinor}`
}
