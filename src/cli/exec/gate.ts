// `makeExecGate` makes the gate of `namegate exec`. The gate is a Daemon without state folder, admin API and metrics. Its listeners and its
// datapath work in the command's network namespace, through sockets that the launcher opened there. The gate asks upstreams from the
// caller's namespace.

import { existsSync } from 'node:fs'
import { formatFault, InvalidInputError, UnavailableError, UsageError } from '../../core/errors.ts'
import { formatAddress, type Prefix } from '../../core/ip.ts'
import type { SocketAddress } from '../../core/socket-address.ts'
import { execConfig } from '../../config/exec-config.ts'
import { Daemon } from '../../daemon/daemon.ts'
import { NftablesDatapath } from '../../datapath/nftables/adapter.ts'
import { configuredPrefixesMax } from '../../enforcement/config-bounds.ts'
import { systemResolvers } from '../../config/machine.ts'
import { SILENT } from '../../telemetry/silent.ts'
import type { Allow } from '../../policy/allow-line.ts'
import { allowPolicy, EXEC_LABELS, EXEC_NAME, recordingPolicy } from '../../sandbox/allow.ts'
import { readingOf } from '../../sources/files/policy-files.ts'
import { checkPaths } from '../policy/check-paths.ts'
import { redirectDns } from '../../sandbox/dns-redirect.ts'
import type { InnerAddons } from '../../sandbox/inner-addons.ts'
import type { InnerSockets } from '../../sandbox/launcher.ts'
import { UPLINK_INTERFACE } from '../../sandbox/uplink.ts'

export interface ExecGateOptions {
  readonly sockets: InnerSockets
  readonly addons: InnerAddons
  readonly allows: readonly Allow[]
  readonly policyFile: string | undefined
  /** The upstream servers. If empty, the servers of resolv.conf are used. */
  readonly upstreams: readonly SocketAddress[]
  readonly audit: boolean
  readonly graceMs: number
  readonly denyResponse: 'refused' | 'nxdomain'
  /** Addresses or prefixes that the command sends from. */
  readonly addresses: readonly string[]
  /** The addresses of the caller's network namespace. */
  readonly nodeAddresses: readonly Prefix[]
}

/** For a configuration of which only the policies are used. */
const NO_OPTIONS = {
  families: [],
  graceMs: 0,
  denyResponse: 'refused',
  allowedPrefixes: [],
} as const

/** Reads the file or folder of --policy, before anything of the host is changed. Throws UsageError with its faults. */
export function mustReadPolicy(policyFile: string): void {
  if (!existsSync(policyFile)) {
    throw new UsageError(`--policy ${JSON.stringify(policyFile)}: there is no such file or folder`)
  }
  const config = execConfig({ ...NO_OPTIONS, policyFile })
  const { faults } = checkPaths([policyFile], readingOf(config.policies))
  if (faults.length === 0) return
  const lines = faults.map((fault) => `\n  ${formatFault(fault)}`)
  throw new UsageError(`exec refuses the policy of --policy:${lines.join('')}`)
}

/** Makes the gate, and redirects the command's queries to it. Throws InvalidInputError for a faulty policy, else UnavailableError. */
export function makeExecGate(options: ExecGateOptions): Daemon {
  const { sockets, allows, policyFile, audit, graceMs, denyResponse } = options
  const families = sockets.listeners.map(({ family }) => family)
  const allowedPrefixes = allows.flatMap(({ target }) =>
    target.kind === 'prefix' ? [target.prefix] : [],
  )
  const config = execConfig({ families, policyFile, graceMs, denyResponse, allowedPrefixes })
  const { limits } = config
  const daemon = new Daemon({
    config,
    nodeAddresses: options.nodeAddresses,
    log: SILENT,
    datapath: new NftablesDatapath({
      ...options.addons,
      isAlone: true,
      rejects: true,
      prefixesMax: limits.pairs + configuredPrefixesMax(limits),
      policyEntriesMax: limits['policy-entries'],
    }),
    servers: options.upstreams.map(({ family, octets, port }) => ({
      family,
      address: formatAddress(family, octets),
      port,
    })),
    sockets: sockets.listeners,
  })
  const policies = new Map<string, unknown>()
  if (policyFile === undefined || allows.length > 0) policies.set('exec-allow', allowPolicy(allows))
  if (audit) policies.set('exec-record', recordingPolicy())
  const endpoint = {
    name: EXEC_NAME,
    labels: EXEC_LABELS,
    addresses: ['127.0.0.0/8', '::1', ...options.addresses],
    interface: UPLINK_INTERFACE,
    hook: 'egress',
    audit,
  }
  redirectDns(options.addons.netlink)
  daemon.sources.edit({ policies, endpoints: new Map([[EXEC_NAME, endpoint]]) })
  return daemon
}

/** Starts the gate. Resolves when policy is enforced. The uplink's interface must exist before. Throws the same errors as makeExecGate. */
export async function startExecGate(daemon: Daemon, policyFile: string | undefined): Promise<void> {
  await daemon.start()
  mustSelect(daemon, policyFile)
  mustEnforce(daemon)
}

/** Returns the DNS servers to ask: the given ones, or those of resolv.conf. Throws UnavailableError if there are none. */
export function upstreamsOf(given: readonly SocketAddress[]): readonly SocketAddress[] {
  const found = given.length > 0 ? given : systemResolvers()
  if (found.length > 0) return found
  throw new UnavailableError('No upstream server: resolv.conf names none; give --upstream ADDRESS')
}

const OWN: ReadonlySet<string> = new Set(['policy exec-allow', 'policy exec-record'])

/** Refuses a policy file that does not select the command, because the command could then reach nothing. */
function mustSelect(daemon: Daemon, policyFile: string | undefined): void {
  if (policyFile === undefined) return
  const [endpoint] = daemon.endpoints.registry
  const policies = endpoint === undefined ? [] : daemon.policies.policiesOf(endpoint.id)
  // For a policy that was given as an object, the field `file` has the text `policy NAME`.
  if (policies.some(({ position }) => !OWN.has(position.file))) return
  throw new InvalidInputError([
    {
      position: { file: policyFile, line: 1, column: 1 },
      message: `no policy here selects the command: it is endpoint ${EXEC_NAME}, labels app=exec, in namespace default`,
    },
  ])
}

/** Throws UnavailableError if the kernel does not enforce policy for the command. */
function mustEnforce(daemon: Daemon): void {
  const [endpoint] = daemon.endpoints.registry
  const state = endpoint === undefined ? undefined : daemon.datapath.hooks.stateOf(endpoint.id)
  const { refused } = daemon.core.committer
  if (state?.kind === 'attached' && refused === 0) return
  const reason =
    refused > 0 ? `the kernel refuses ${refused} entries` : JSON.stringify(state ?? 'no endpoint')
  throw new UnavailableError(`Cannot enforce policy for the command: ${reason}`)
}
