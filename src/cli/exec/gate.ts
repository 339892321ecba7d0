// The gate of `namegate exec`: the daemon's composition root, without files, admin API and metrics. Its listeners and its datapath
// are in the command's network namespace, by sockets that the launcher opened there; its upstreams are in ours.

import { InvalidInputError, UnavailableError } from '../../core/errors.ts'
import { formatAddress } from '../../core/ip.ts'
import type { SocketAddress } from '../../core/socket-address.ts'
import { execConfig } from '../../config/exec-config.ts'
import { Daemon } from '../../daemon/daemon.ts'
import { openExecDatapath } from './open-datapath.ts'
import { systemResolvers } from '../../sources/system-resolvers.ts'
import { SILENT } from '../../telemetry/silent.ts'
import type { Allow } from '../../policy/allow-line.ts'
import { allowPolicy, EXEC_LABELS, EXEC_NAME, recordingPolicy } from '../../sandbox/allow.ts'
import { redirectDns } from '../../sandbox/dns-redirect.ts'
import type { InnerAddons } from '../../sandbox/inner-addons.ts'
import type { InnerSockets } from '../../sandbox/launcher.ts'
import { UPLINK_INTERFACE } from '../../sandbox/uplink.ts'

export interface ExecGateOptions {
  readonly sockets: InnerSockets
  readonly addons: InnerAddons
  readonly allows: readonly Allow[]
  readonly policyFile: string | undefined
  /** Empty: those of resolv.conf. */
  readonly upstreams: readonly SocketAddress[]
  readonly audit: boolean
  readonly graceMs: number
  /** What the command sends from. */
  readonly addresses: readonly string[]
}

/** Made, with its rules in the command's network namespace; throws InvalidInputError or UnavailableError. */
export function makeExecGate(options: ExecGateOptions): Daemon {
  const { sockets, allows, policyFile, audit, graceMs } = options
  const families = sockets.listeners.map(({ family }) => family)
  const allowedPrefixes = allows.flatMap(({ target }) =>
    target.kind === 'prefix' ? [target.prefix] : [],
  )
  const config = execConfig({ families, policyFile, graceMs, allowedPrefixes })
  const daemon = new Daemon({
    config,
    log: SILENT,
    datapath: openExecDatapath(config, options.addons),
    servers: serversOf(options.upstreams),
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

/** Until it enforces; the uplink's interface is there by now. Throws as making it does. */
export async function startExecGate(daemon: Daemon, policyFile: string | undefined): Promise<void> {
  await daemon.start()
  mustSelect(daemon, policyFile)
  mustEnforce(daemon)
}

function serversOf(given: readonly SocketAddress[]) {
  const found = given.length > 0 ? given : systemResolvers()
  if (found.length === 0) {
    throw new UnavailableError(
      'No upstream server: resolv.conf names none; give --upstream ADDRESS:PORT',
    )
  }
  return found.map(({ family, octets, port }) => ({
    family,
    address: formatAddress(family, octets),
    port,
  }))
}

const OWN: ReadonlySet<string> = new Set(['policy exec-allow', 'policy exec-record'])

/** A policy file for somebody else would leave the command with nothing, and nobody would know why. */
function mustSelect(daemon: Daemon, policyFile: string | undefined): void {
  if (policyFile === undefined) return
  const [endpoint] = daemon.endpoints.registry
  const policies = endpoint === undefined ? [] : daemon.policies.policiesOf(endpoint.id)
  // What is given here by name stands under `policy NAME`, not under a path.
  if (policies.some(({ position }) => !OWN.has(position.file))) return
  throw new InvalidInputError([
    {
      position: { file: policyFile, line: 1, column: 1 },
      message: `no policy here selects the command: it is endpoint ${EXEC_NAME}, labels app=exec, in namespace default`,
    },
  ])
}

/** Never a command that nothing fences. */
function mustEnforce(daemon: Daemon): void {
  const [endpoint] = daemon.endpoints.registry
  const state = endpoint === undefined ? undefined : daemon.datapath.hooks.stateOf(endpoint.id)
  const { refused } = daemon.core.committer
  if (state?.kind === 'attached' && refused === 0) return
  const reason =
    refused > 0 ? `the kernel refuses ${refused} entries` : JSON.stringify(state ?? 'no endpoint')
  throw new UnavailableError(`Cannot fence the command: ${reason}`)
}
