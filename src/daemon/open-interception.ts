// Builds interception from the config: the plan, the tools, the lock, and the datapath's flags. The daemon and `namegate intercept` use
// the same functions, so both make the same rules.

import { existsSync, readFileSync } from 'node:fs'
import type { Config, PlacedPath } from '../config/config.ts'
import type { Clock } from '../core/clock.ts'
import { TCP, UDP } from '../core/protocol.ts'
import type { Datapath } from '../datapath/datapath.ts'
import type { DatapathDump } from '../datapath/entries.ts'
import {
  clearIntercepted,
  readIntercepted,
  setIntercepted,
} from '../datapath/ebpf/maps/exceptions.ts'
import type { EndpointHook } from '../endpoints/registry.ts'
import { Interception } from '../intercept/interception.ts'
import { withInterceptLock } from '../state/lock.ts'
import { NO_CHANGES, openChanges } from '../intercept/changes.ts'
import { DNS_PORT, makePlan, type InterceptPlan, type PlanOptions } from '../intercept/plan.ts'
import { Rules, type InterceptFlags } from '../intercept/rules.ts'
import type { EndpointPlaces } from '../intercept/targets.ts'
import { runTool } from '../intercept/tools.ts'
import { openConntrack, type Flow } from '../native/netfilter/conntrack.ts'
import { loadBpf, loadPosix } from '../native/native.ts'
import { readEndpointFiles } from '../sources/files/endpoint-files.ts'
import type { Log } from '../telemetry/log.ts'

export interface DaemonInterception {
  readonly config: Config
  readonly clock: Clock
  readonly log: Log
  readonly datapath: Datapath
  readonly servers: PlanOptions['servers']
}

/** The daemon's interception. If no listener is transparent, no native module is loaded. */
export function openInterception(options: DaemonInterception): Interception {
  const { config, clock, log, datapath, servers } = options
  const plan = planOf(config, servers, process.geteuid?.() ?? 0)
  const flags: InterceptFlags = {
    read: () => datapath.exceptions.intercepted(),
    set: (interfaces) => datapath.exceptions.setIntercepted(interfaces),
  }
  const pause = async (ms: number): Promise<void> =>
    await new Promise<void>((done) => clock.after(ms, done))
  return new Interception({
    plan,
    onStart: config.intercept.onStart,
    onExit: config.intercept.onExit,
    rules: makeRules(flags),
    alone: async (work) => await withInterceptLock(loadPosix(), pause, work),
    changes: plan === undefined ? NO_CHANGES : openChanges(plan),
    clock,
    log,
  })
}

/** The plan of a config. Undefined when no listener has a transparent mode. */
export function planOf(
  config: Config,
  servers: PlanOptions['servers'],
  uid: number,
): InterceptPlan | undefined {
  return makePlan({ config, servers, uid, hasIpv6: hasIpv6() })
}

export function makeRules(flags: InterceptFlags): Rules {
  return new Rules({ run: runTool, flags, forgetFlows })
}

/** Flags in the pinned maps, which exist with and without a daemon. Without pins, no program of namegate stops intercepted queries. */
export function pinnedFlags(pinPath: string | undefined): InterceptFlags {
  if (pinPath === undefined) return { read: () => [], set: () => undefined }
  const bpf = loadBpf()
  return {
    read: () => readIntercepted(bpf, pinPath) ?? [],
    set: (interfaces) =>
      interfaces.length === 0
        ? clearIntercepted(bpf, pinPath)
        : setIntercepted(bpf, pinPath, interfaces),
  }
}

/**
 * True if the rules of interception come before the enforcement of endpoints. So a workload that already runs loses no query
 * between them at a first start. Its query waits until the endpoint is known, unless unknown clients are allowed. After an
 * earlier daemon there are rules already, and enforcement comes first.
 */
export function areRulesFirst(
  { unknownClients }: Pick<Config, 'unknownClients'>,
  { endpoints }: Pick<DatapathDump, 'endpoints'>,
): boolean {
  return endpoints.length === 0 && unknownClients.onTimeout === 'refuse'
}

/** Where endpoints are on this host. */
export function placesOf(endpoints: Iterable<{ readonly hook: EndpointHook }>): EndpointPlaces {
  const hooks = [...endpoints].map(({ hook }) => hook)
  const interfaces = hooks.flatMap((hook) =>
    hook.kind === 'interface' && hook.side === 'ingress' ? [hook.name] : [],
  )
  const cgroups = hooks.flatMap((hook) => (hook.kind === 'cgroup' ? [hook.path] : []))
  return { interfaces: [...new Set(interfaces)], cgroups }
}

/** Where the endpoints of the endpoints files are. Needs no daemon. */
export function configuredPlaces(files: readonly PlacedPath[]): EndpointPlaces {
  return placesOf(readEndpointFiles(files))
}

function forgetFlows(isKept: (flow: Flow) => boolean): number {
  const opened = openConntrack()
  if (opened.kind === 'absent') return opened.errno
  try {
    return opened.table.flushPort(DNS_PORT, [UDP, TCP], [4, 6], isKept)
  } finally {
    opened.table.close()
  }
}

/** True if this network namespace can deliver IPv6 packets to itself, which TPROXY needs. */
function hasIpv6(): boolean {
  const setting = '/proc/sys/net/ipv6/conf/lo/disable_ipv6'
  return existsSync(setting) && readFileSync(setting, 'utf8').trim() === '0'
}
