// Makes the configuration of `namegate exec`: the daemon's configuration with some values of its own. The configuration is built without
// the schema, because loading zod takes longer than making a sandbox. test/config/exec-config.test.ts compares all other values with the
// schema.

import type { Position } from '../core/errors.ts'
import { invariant } from '../core/invariant.ts'
import { containsPrefix, halvesOf, parseAddress, type Family, type Prefix } from '../core/ip.ts'
import { makeLimits, type Limits } from '../core/limits.ts'
import { PRIVATE_PREFIXES } from '../names/guard.ts'
import { DEFAULT_IDENTITY_LABELS } from '../policy/identity-labels.ts'
import type { Config, ListenerConfig, PlacedPath } from './config.ts'
import { DEFAULT_PIN_PATH } from '../core/pin-path.ts'

export interface ExecConfigOptions {
  readonly families: readonly Family[]
  readonly policyFile: string | undefined
  readonly graceMs: number
  /** The answer to a name that policy refuses. */
  readonly denyResponse: Config['dns']['denyResponse']
  /** Addresses that `--allow` names. Every other private address is protected. */
  readonly allowedPrefixes: readonly Prefix[]
}

/**
 * The limits of one command. They are smaller than the daemon's, so the tables are made sooner. At a bound, the command and the daemon do
 * the same.
 */
export const EXEC_LIMITS: Partial<Limits> = {
  pairs: 20_000,
  'wildcard-names': 40_000,
  selectors: 10_000,
  'dynamic-identities': 10_000,
  'static-identities': 10_000,
  'policy-entries': 16_384,
  endpoints: 16,
  resources: 16,
  'queries-in-flight': 4096,
  'tcp-connections': 512,
  'connections-per-endpoint': 8192,
}

const DNS_PORT = 53
/**
 * Longer than the daemon's 100 ms. A command often runs beside a build that keeps all processors busy, and it is done once: a SERVFAIL to
 * one of its two questions (A and AAAA) leaves it without addresses of this family. Shorter than the 5 s of resolv.conf(5).
 */
const HOLD_MS = 2000
/** The position of values that are in no file. */
const NOWHERE: Position = { file: 'exec', line: 0, column: 0 }
const POLICY_OPTION: Position = { file: '--policy', line: 0, column: 0 }

export function execConfig(options: ExecConfigOptions): Config {
  const { families, policyFile, graceMs, denyResponse, allowedPrefixes } = options
  return {
    file: NOWHERE.file,
    listeners: families.map(listenerOf),
    intercept: { onStart: false, onExit: 'closed', mark: 0x4e47, table: 20_039 },
    upstreams: {
      servers: [{ kind: 'system', position: NOWHERE }],
      originalDestination: false,
      trusted: [],
      untrusted: 'refuse',
      timeoutMs: 4000,
      attempts: 3,
    },
    unknownClients: { waitMs: 2000, onTimeout: 'refuse' },
    policies: {
      paths: pathsOf(policyFile),
      watch: false,
      allowListEndpoints: new Map(),
      ingress: 'error',
      unsupportedFields: 'error',
      cidrMatchesEndpoints: false,
    },
    endpoints: { files: [], identityLabels: DEFAULT_IDENTITY_LABELS },
    clusterName: 'default',
    resources: { files: [] },
    defaultEgress: 'deny',
    learning: 'node',
    audit: { node: false, endpoints: [] },
    datapath: { kind: 'nftables', adoptExistingMs: 0, pinPath: DEFAULT_PIN_PATH },
    state: { directory: 'var/state', restoreGraceMs: 600_000 },
    sources: { maxAgeMs: 86_400_000, onMaxAge: 'keep' },
    flows: { keepMs: 7 * 86_400_000, maxOctets: 256 * 2 ** 20, outputs: ['file'] },
    admin: { socket: 'var/run/admin.sock' },
    metrics: { address: '127.0.0.1', port: 9465 },
    dns: {
      denyResponse,
      // A policy file is read as the daemon reads it. Without a policy file, only what `--allow` names is allowed.
      withoutRules: policyFile === undefined ? 'deny' : 'allow',
      hold: { limitMs: HOLD_MS, onLimit: 'servfail' },
      onDegraded: 'release',
      cnameMatch: 'question',
      svcb: 'learn',
      guard: 'pass',
      minTtlMs: 0,
      maxTtlMs: 86_400_000,
      graceAfterTtlMs: graceMs,
      tcpIdleMs: 21_600_000,
      udpIdleMs: 180_000,
      protectedPrefixes: PRIVATE_PREFIXES.flatMap((each) => without(each, allowedPrefixes)),
      prewarm: false,
    },
    limits: makeLimits(EXEC_LIMITS),
    log: { level: 'info', format: 'pretty' },
  }
}

/** The prefixes that together cover `prefix` without the addresses in `holes`. */
function without(prefix: Prefix, holes: readonly Prefix[]): readonly Prefix[] {
  if (holes.some((hole) => containsPrefix(hole, prefix))) return []
  const inside = holes.filter((hole) => containsPrefix(prefix, hole))
  if (inside.length === 0) return [prefix]
  return halvesOf(prefix).flatMap((half) => without(half, inside))
}

function pathsOf(file: string | undefined): readonly PlacedPath[] {
  return file === undefined ? [] : [{ path: file, position: POLICY_OPTION }]
}

function listenerOf(family: Family): ListenerConfig {
  const address = parseAddress(family === 4 ? '127.0.0.1' : '::1')
  invariant(address !== undefined, 'loopback is an address')
  return {
    address,
    port: DNS_PORT,
    mode: 'explicit',
    interfaces: [],
    processes: 'all',
    position: NOWHERE,
  }
}
