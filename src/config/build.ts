// Turns the keys of the schema into the fields of Config: texts become addresses and prefixes, or faults. Pure; load.ts calls it.

import type { Fault } from '../core/errors.ts'
import { invariant } from '../core/invariant.ts'
import { parseAddress, parsePrefix, type Prefix } from '../core/ip.ts'
import { isLimitKey, makeLimits, type LimitKey, type Limits } from '../core/limits.ts'
import { parseSocketAddress, SOCKET_ADDRESS_FORM, SOCKET_PATH_MAX } from '../core/socket-address.ts'
import {
  describeValue,
  formatPath,
  type SourceDocument,
  type SourcePath,
} from '../documents/source-document.ts'
import { PRIVATE_PREFIXES } from '../names/guard.ts'
import { labelKeyFault } from '../policy/match/labels.ts'
import type { LabelSelector } from '../policy/rule.ts'
import { pathFrom } from './files.ts'
import type {
  Config,
  DatapathConfig,
  DnsConfig,
  FlowsConfig,
  ListenerConfig,
  PlacedPath,
  UpstreamServer,
  UpstreamsConfig,
} from './config.ts'
import type { ConfigKeys } from './schema.ts'

const FLOWS_SIZE_MIN = 1_048_576

/** The configuration with its faults; with faults it must not be used. */
export function buildConfig(
  document: SourceDocument,
  file: string,
  keys: ConfigKeys,
): { readonly config: Config; readonly faults: readonly Fault[] } {
  const builder = new Builder(document, file, keys)
  return { config: builder.build(), faults: builder.faults }
}

class Builder {
  readonly faults: Fault[] = []
  readonly #document: SourceDocument
  readonly #file: string
  readonly #keys: ConfigKeys

  constructor(document: SourceDocument, file: string, keys: ConfigKeys) {
    this.#document = document
    this.#file = file
    this.#keys = keys
  }

  build(): Config {
    const keys = this.#keys
    return {
      file: this.#file,
      listeners: keys.listeners.map((_, i) => this.#listener(i)),
      intercept: {
        onStart: keys.intercept['on-start'],
        onExit: keys.intercept['on-exit'],
        mark: keys.intercept.mark,
        table: keys.intercept.table,
      },
      upstreams: this.#upstreams(),
      unknownClients: {
        waitMs: keys['unknown-clients'].wait,
        onTimeout: keys['unknown-clients'].then,
      },
      policies: {
        paths: this.#paths(keys.policies.paths, ['policies', 'paths']),
        watch: keys.policies.watch,
        allowListEndpoints: this.#labels(keys.policies['allow-list-endpoints'], [
          'policies',
          'allow-list-endpoints',
        ]),
        ingress: keys.policies.ingress,
        unsupportedFields: keys.policies['unsupported-fields'],
        cidrMatchesEndpoints: keys.policies['cidr-matches-endpoints'],
      },
      endpoints: {
        files: this.#paths(keys.endpoints.files, ['endpoints', 'files']),
        identityLabels: keys.endpoints['identity-labels'],
      },
      clusterName: keys['cluster-name'],
      resources: { files: this.#paths(keys.resources.files, ['resources', 'files']) },
      defaultEgress: keys['default-egress'],
      learning: keys.learning,
      audit: {
        node: keys.audit.node,
        endpoints: keys.audit.endpoints.map((_, i) => this.#selector(i)),
      },
      datapath: this.#datapath(),
      state: {
        directory: this.#path(keys.state.directory),
        restoreGraceMs: keys.state['restore-grace'],
      },
      sources: { maxAgeMs: keys.sources['max-age'], onMaxAge: keys.sources.then },
      flows: this.#flows(),
      admin: { socket: this.#socket() },
      metrics: keys.metrics,
      dns: this.#dns(),
      limits: toLimits(keys.limits),
      log: keys.log,
    }
  }

  #listener(i: number): ListenerConfig {
    const { address, port, mode, interfaces } = this.#keys.listeners[i] ?? {}
    return {
      address: address === undefined ? undefined : parseAddress(address),
      port: port ?? 0,
      mode: mode ?? 'explicit',
      interfaces: interfaces ?? [],
      position: this.#document.positionOf(['listeners', i]),
    }
  }

  #upstreams(): UpstreamsConfig {
    const { timeout, attempts, trusted, untrusted } = this.#keys.upstreams
    return {
      servers: this.#servers(),
      originalDestination: this.#keys.upstreams['original-destination'],
      trusted: toPrefixes(trusted),
      untrusted,
      timeoutMs: timeout,
      attempts,
    }
  }

  #datapath(): DatapathConfig {
    const { kind, ebpf, verify } = this.#keys.datapath
    const adoptExistingMs = this.#keys.datapath['adopt-existing']
    const shared = { adoptExistingMs, pinPath: this.#path(ebpf['pin-path']) }
    switch (builtWord(kind, ['memory', 'ebpf', 'nftables'])) {
      case 'memory':
        return { kind: 'memory', ...shared }
      case 'ebpf':
        return { kind: 'ebpf', ...shared, verifyMs: verify }
      case 'nftables':
        return { kind: 'nftables', ...shared }
    }
  }

  #servers(): readonly UpstreamServer[] {
    return this.#keys.upstreams.servers.flatMap((text, i): UpstreamServer[] => {
      const path = ['upstreams', 'servers', i]
      const position = this.#document.positionOf(path)
      if (text === 'system') return [{ kind: 'system', position }]
      const address = parseSocketAddress(text)
      if (address !== undefined) return [{ kind: 'address', address, position }]
      this.#expected(path, text, `system or ${SOCKET_ADDRESS_FORM}`)
      return []
    })
  }

  #path(path: string): string {
    return pathFrom(this.#file, path)
  }

  #socket(): string {
    const path = this.#path(this.#keys.admin.socket)
    const octets = Buffer.byteLength(path)
    if (octets > SOCKET_PATH_MAX) {
      const found = `found a path of ${octets} octets, expected at most ${SOCKET_PATH_MAX}`
      this.#fault(['admin', 'socket'], `admin.socket: ${found}`)
    }
    return path
  }

  #paths(paths: readonly string[], at: SourcePath): readonly PlacedPath[] {
    return paths.map((path, i) => {
      return { path: this.#path(path), position: this.#document.positionOf([...at, i]) }
    })
  }

  #selector(i: number): LabelSelector {
    const path = ['audit', 'endpoints', i]
    const keys = this.#keys.audit.endpoints[i]
    const matchLabels = this.#labels(keys?.matchLabels ?? {}, [...path, 'matchLabels'])
    const matchExpressions = keys?.matchExpressions ?? []
    matchExpressions.forEach(({ key, operator, values }, n) => {
      const at = [...path, 'matchExpressions', n]
      const expected = labelKeyFault(key)
      if (expected !== undefined) this.#expected([...at, 'key'], key, expected)
      const wants = operator === 'In' || operator === 'NotIn'
      if (wants === values.length > 0) return
      const found =
        values.length === 0 ? 'no values, expected at least one' : 'values, expected none'
      this.#fault(
        [...at, 'values'],
        `${formatPath([...at, 'values'])}: found ${found} for ${operator}`,
      )
    })
    return matchExpressions.length === 0 ? { matchLabels } : { matchLabels, matchExpressions }
  }

  #labels(labels: Readonly<Record<string, string>>, path: SourcePath): ReadonlyMap<string, string> {
    for (const key of Object.keys(labels)) {
      const expected = labelKeyFault(key)
      if (expected !== undefined) this.#expected([...path, key], key, expected)
    }
    return new Map(Object.entries(labels))
  }

  #dns(): DnsConfig {
    const { dns } = this.#keys
    if (dns['min-ttl'] > dns['max-ttl']) {
      this.#fault(['dns', 'min-ttl'], 'dns.min-ttl: found a longer time than dns.max-ttl')
    }
    return {
      denyResponse: dns['deny-response'],
      withoutRules: dns['without-rules'],
      hold: { limitMs: dns.hold.limit, onLimit: dns.hold['on-limit'] },
      onDegraded: dns['on-degraded'],
      cnameMatch: dns['cname-match'],
      svcb: dns.svcb,
      guard: dns.guard,
      minTtlMs: dns['min-ttl'],
      maxTtlMs: dns['max-ttl'],
      graceAfterTtlMs: dns['grace-after-ttl'],
      tcpIdleMs: dns['tcp-idle'],
      udpIdleMs: dns['udp-idle'],
      protectedPrefixes: [
        ...toPrefixes(dns['protected-prefixes']),
        ...(dns['guard-private'] ? PRIVATE_PREFIXES : []),
      ],
      prewarm: dns.prewarm,
    }
  }

  #flows(): FlowsConfig {
    const { keep, output } = this.#keys.flows
    const maxOctets = this.#keys.flows['max-size']
    if (maxOctets < FLOWS_SIZE_MIN) {
      this.#fault(['flows', 'max-size'], 'flows.max-size: found less than 1MiB')
    }
    return { keepMs: keep, maxOctets, outputs: [...new Set(output)] }
  }

  #expected(path: SourcePath, found: string, expected: string): void {
    this.#fault(path, `${formatPath(path)}: found ${describeValue(found)}, expected ${expected}`)
  }

  #fault(path: SourcePath, message: string): void {
    this.faults.push({ position: this.#document.positionOf(path), message })
  }
}

/** Prefixes whose form the schema has checked. */
function toPrefixes(texts: readonly string[]): readonly Prefix[] {
  return texts.flatMap((text) => {
    const result = parsePrefix(text)
    return result.kind === 'ok' ? [result.prefix] : []
  })
}

/** The word as one of those that are built; the schema has refused the others. */
function builtWord<const Word extends string>(
  word: string | undefined,
  built: readonly Word[],
): Word {
  const found = built.find((each) => each === word)
  invariant(found !== undefined, `the schema lets no word through but ${built.join(', ')}`)
  return found
}

function toLimits(keys: Readonly<Record<string, number>>): Limits {
  const overrides: { -readonly [Key in LimitKey]?: number } = {}
  for (const [key, value] of Object.entries(keys)) if (isLimitKey(key)) overrides[key] = value
  return makeLimits(overrides)
}
