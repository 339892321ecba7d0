// A node without packets: core state, policies and endpoints over a recorder and a fake clock, with short forms for frequent steps of
// tests. The loader reads policies from text.

import assert from 'node:assert/strict'
import { EndpointControl, type EndpointRecord } from '../../../src/enforcement/endpoint-control.ts'
import { CoreState } from '../../../src/enforcement/core-state.ts'
import { Persistence } from '../../../src/restore/persistence.ts'
import type { StateFolder } from '../../../src/restore/state-port.ts'
import { PolicyControl } from '../../../src/enforcement/policy-control.ts'
import { Restart } from '../../../src/restore/restart.ts'
import { Transition } from '../../../src/enforcement/transition.ts'
import { formatFault } from '../../../src/core/errors.ts'
import type { EndpointId, Identity } from '../../../src/core/ids.ts'
import { formatPrefix, parsePrefix, widthOf, type Prefix } from '../../../src/core/ip.ts'
import { makeLimits } from '../../../src/core/limits.ts'
import { parseName } from '../../../src/core/name.ts'
import { UDP, type DnsProtocol } from '../../../src/core/protocol.ts'
import { MAY_ASK } from '../../../src/enforcement/dns-verdicts.ts'
import type { DatapathDump } from '../../../src/datapath/entries.ts'
import type { NameBounds } from '../../../src/names/eviction/eviction.ts'
import type { Endpoint } from '../../../src/endpoints/registry.ts'
import type { DefaultEgress } from '../../../src/policy/compile/default-egress.ts'
import { IdentityLabels } from '../../../src/policy/identity-labels.ts'
import { loadPolicies } from '../../../src/policy/load/load.ts'
import { parsePattern, type Pattern } from '../../../src/policy/match/pattern.ts'
import type { Policy } from '../../../src/policy/rule.ts'
import { differ } from '../differ.ts'
import { FakeClock } from '../fake-clock.ts'
import { hashedName, teach } from '../hashed-name.ts'
import { keyOfPrefix, Recorder, type Verdict } from '../models/recorder.ts'

export interface NodeOptions {
  readonly pairs?: number
  /** The other bounds of the tables of names. */
  readonly bounds?: Partial<NameBounds>
  readonly dynamicIdentities?: number
  readonly dynamicPerEndpoint?: number
  readonly policyEntries?: number
  readonly configuredPrefixes?: number
  readonly staticIdentities?: number
  readonly graceSeconds?: number
  readonly learning?: 'node' | 'endpoint'
  readonly defaultEgress?: DefaultEgress
  readonly withoutDnsRules?: 'allow' | 'deny'
  readonly nodeAddresses?: readonly string[]
  readonly protectedPrefixes?: readonly string[]
  readonly cidrMatchesEndpoints?: boolean
  readonly identityLabels?: IdentityLabels
  /** Rows that a transition moves between two looks at the clock. */
  readonly rowsPerLook?: number
  readonly clock?: FakeClock
  readonly recorder?: Recorder | undefined
  /** The state folder: its contents from an earlier node, and the place where this node writes. */
  readonly kept?: StateFolder
}

export class Node {
  readonly clock: FakeClock
  readonly recorder: Recorder
  readonly restored: DatapathDump
  readonly core: CoreState
  readonly policies: PolicyControl
  readonly endpoints: EndpointControl
  readonly transition: Transition
  readonly restart: Restart
  /** Called for each endpoint that is gone. */
  onGone: (endpoint: Endpoint) => void = () => undefined

  constructor(options: NodeOptions = {}) {
    this.clock = options.clock ?? new FakeClock()
    this.recorder = options.recorder ?? new Recorder()
    this.restored = this.recorder.start()
    const nodeAddresses = (options.nodeAddresses ?? []).map(prefixOf)
    const pairs = options.pairs ?? 4096
    const persistence = new Persistence(options.kept, pairs)
    this.core = new CoreState({
      clock: this.clock,
      datapath: this.recorder,
      restored: this.restored,
      ...persistence.ofCore,
      limits: {
        // Tests make thousands of nodes, so the tables are only as large as needed.
        names: makeLimits({
          'connections-per-endpoint': 64,
          'wildcard-names': 2 * pairs,
          ...options.bounds,
          pairs,
        }),
        dynamicIdentities: options.dynamicIdentities ?? 4096,
        dynamicIdentitiesPerEndpoint: options.dynamicPerEndpoint ?? 512,
        policyEntries: options.policyEntries ?? 16_384,
        configuredPrefixes: options.configuredPrefixes ?? 1024,
      },
      graceSeconds: options.graceSeconds ?? 60,
      learning: options.learning ?? 'node',
      nodeAddresses,
      protectedPrefixes: (options.protectedPrefixes ?? []).map(prefixOf),
      cidrMatchesEndpoints: options.cidrMatchesEndpoints ?? false,
    })
    const { core } = this
    this.policies = new PolicyControl({
      core,
      defaultEgress: options.defaultEgress ?? 'allow',
      withoutDnsRules: options.withoutDnsRules ?? 'allow',
      staticIdentitiesMax: options.staticIdentities ?? 1_000_000,
      identityLabels: options.identityLabels ?? new IdentityLabels([]),
    })
    this.endpoints = new EndpointControl({
      core,
      policies: this.policies,
      restored: this.restored,
      nodeAddresses,
      endpointsMax: 1024,
      saved: persistence.endpoints,
      onDocument: persistence.onDocument,
      onGone: (endpoint) => this.onGone(endpoint),
    })
    const rowsPerLook = options.rowsPerLook ?? 64
    this.transition = new Transition({ core, policies: this.policies, rowsPerLook })
    persistence.begin(core, () => this.endpoints.documents())
    this.restart = new Restart({
      core,
      restored: this.restored,
      pending: persistence.pendingEntries(core, this.endpoints.registry),
      graceMs: 600_000,
      endpoints: () => new Set([...this.endpoints.registry].map(({ id }) => id)),
    })
  }

  /** Restores everything that an earlier daemon knew and enforced, up to the restore grace or beyond it. */
  takeOver(until: 'grace' | 'done' = 'done'): void {
    while (this.restart.step(Infinity)) continue
    if (until === 'grace') return
    this.restart.leave()
    while (this.restart.step(Infinity)) continue
    assert.deepEqual([this.restart.phase, this.core.committer.failures], ['done', 0])
  }

  /** Sets the endpoints by name, addresses and labels. All is in force on return. */
  setEndpoints(records: readonly EndpointRecord[]): void {
    this.endpoints.apply(records)
    this.settle()
  }

  /** Puts policies in force completely. */
  setPolicies(policies: readonly Policy[]): void {
    this.policies.setPolicies(policies, this.endpoints.registry)
    this.settle()
  }

  /** Finishes all pending work. */
  settle(): void {
    this.transition.begin()
    this.transition.finish()
  }

  endpoint(name: string): Endpoint {
    const endpoint = this.endpoints.registry.byName(name)
    assert.ok(endpoint !== undefined, `endpoint ${name} is known`)
    return endpoint
  }

  /** Learns an answer, and commits before its release. Returns the row of each address. */
  learn(
    endpoint: EndpointId,
    name: string,
    addresses: readonly string[],
    ttl = 300,
  ): readonly number[] {
    const question = hashedName(name)
    this.core.names.begin()
    const rows = addresses.map((text) => {
      const { family, octets } = prefixOf(text)
      return teach(this.core.names, { endpoint, name: question, family, octets, ttl })
    })
    this.core.committer.commit()
    return rows
  }

  /** The row of a prefix in the node's scope or in an endpoint's scope; 0 if there is none. */
  rowOf(text: string, scope = 0): number {
    const { family, octets, length } = prefixOf(text)
    return this.core.ipcache.prefixes.findIn(scope, family, octets, 0, length)
  }

  /** Sorted label texts of a prefix that has a row; none otherwise. */
  labelsOf(text: string, scope = 0): readonly string[] {
    const row = this.rowOf(text, scope)
    return this.core.labelSets.format(row === 0 ? 0 : this.core.ipcache.prefixes.derived[row]!)
  }

  identityOf(text: string, scope = 0): Identity {
    return this.core.ipcache.prefixes.identityOf(this.rowOf(text, scope))
  }

  /** The identities that the FQDN selector of the pattern selects, or the CIDR selector of a prefix. */
  selectedBy(text: string, except: readonly string[] = []): readonly Identity[] {
    const spec = text.includes('/')
      ? { kind: 'cidr' as const, prefix: prefixOf(text), except: except.map(prefixOf) }
      : { kind: 'fqdn' as const, pattern: patternOf(text) }
    const selector = this.core.selectors.find(spec)
    assert.ok(selector !== undefined, `selector ${text} is known`)
    return [...selector.identities].sort((a, b) => a - b)
  }

  /** The datapath's verdict about packets of `endpoint` to an address and `443/6` (port/protocol). */
  verdict(name: string, address: string, port = 443, protocol = 6): Verdict {
    return this.recorder.verdict(this.endpoint(name).id, prefixOf(address), protocol, port)
  }

  mayAsk(endpoint: string, name: string, protocol: DnsProtocol = UDP): boolean {
    const { id } = this.endpoint(endpoint)
    return this.policies.dnsVerdicts.judge(id, protocol, wireOf(name), 0) === MAY_ASK
  }

  /** Every desired entry that the datapath lacks, and every other entry that it has. */
  differences(): readonly string[] {
    const { prefixes } = this.core.ipcache
    const wanted = new Map<string, string>()
    for (let row = 1; row <= prefixes.slots.high; row++) {
      if (prefixes.wanted[row] === 0) continue
      const key = keyOfPrefix(prefixes.prefix(row), prefixes.scoped.scope[row] ?? 0)
      wanted.set(key, `${prefixes.wanted[row]} ${prefixes.addressClass[row]}`)
    }
    const have = new Map<string, string>()
    for (const [key, place] of this.recorder.prefixes) {
      have.set(key, `${place.identity} ${place.addressClass}`)
    }
    const text = JSON.stringify
    const wantedPolicies = [...this.core.policyMaps.entries()].map((entry) => text(entry))
    const havePolicies = [...this.recorder.policies.values()].map((entry) => text(entry))
    return [
      ...differ([...wanted].map(String), [...have].map(String)),
      ...differ(wantedPolicies, havePolicies),
    ]
  }
}

export function mkEndpoint(
  name: string,
  addresses: readonly string[],
  labels: readonly string[] = [],
): EndpointRecord {
  const hook = { kind: 'interface' as const, name: `lxc-${name}`, side: 'ingress' as const }
  return { name, addresses: addresses.map(prefixOf), labels, hook, audit: false }
}

/** Policies from YAML; a text that starts with `egress` or the like is the spec of one clusterwide policy. */
export function mkPolicies(...texts: readonly string[]): readonly Policy[] {
  return texts.flatMap((text, i) => {
    const spec = text.startsWith('apiVersion') ? text : wrap(text, i)
    const { policies, faults } = loadPolicies(spec, `policy-${i}.yaml`)
    assert.deepEqual(faults.map(formatFault), [])
    return policies
  })
}

function wrap(spec: string, i: number): string {
  const selector = spec.includes('endpointSelector') ? '' : '  endpointSelector: {}\n'
  const body = spec.trimEnd().replace(/^/gm, '  ')
  return `apiVersion: cilium.io/v2\nkind: CiliumClusterwideNetworkPolicy\nmetadata: { name: policy-${i} }\nspec:\n${selector}${body}\n`
}

/** Prefixes that were read before: random tests read the same few again and again. */
const prefixes = new Map<string, Prefix>()

/** An address or prefix. */
export function prefixOf(text: string): Prefix {
  const known = prefixes.get(text)
  if (known !== undefined) return known
  const result = parsePrefix(text)
  assert.ok(result.kind === 'ok', `${text} is a prefix`)
  prefixes.set(text, result.prefix)
  return result.prefix
}

export function patternOf(text: string): Pattern {
  const result = parsePattern(text, { allowStar: true })
  assert.ok(result.kind === 'ok', `${text} is a pattern`)
  return result.pattern
}

export function wireOf(name: string): Uint8Array {
  const result = parseName(name)
  assert.ok(result.kind === 'ok', `${name} is a name`)
  return result.name
}

/** `10.0.0.0/8` as it is written in labels and keys. */
export function canonical(text: string): string {
  return formatPrefix(prefixOf(text))
}

/** Address number `n` of a family, out of 192.0.2.0/24's and 2001:db8::/32's neighbourhood. */
export function addressNumber(family: 4 | 6, n: number): string {
  const [high, low] = [n >> 8, n & 255]
  return widthOf(family) === 32
    ? `198.18.${high}.${low}`
    : `2001:db8::${high.toString(16)}:${low.toString(16)}`
}
