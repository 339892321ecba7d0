// A datapath that keeps everything in plain Maps and counts the writes of each section: for asserts about writes and about every moment
// inside a commit. It applies changes as the port demands, and refuses writes on request.

import type { EndpointId, Identity } from '../../../src/core/ids.ts'
import { formatPrefix, truncatePrefix, widthOf, type Prefix } from '../../../src/core/ip.ts'
import type {
  HookControl,
  ModeSwitch,
  PacketReports,
  PeerScan,
  PeerTable,
} from '../../../src/datapath/abilities.ts'
import type {
  Changes,
  ChangeSection,
  CommitFailure,
  CommitResult,
  DatapathDump,
  EndpointEntry,
  HookState,
  Mode,
  PolicyEntry,
  PolicyKey,
} from '../../../src/datapath/entries.ts'
import type { Datapath } from '../../../src/datapath/datapath.ts'
import {
  NO_ADOPTION,
  NO_FENCES,
  NO_PEERS,
  NO_REPAIR,
  NoExceptions,
} from '../../../src/datapath/memory/no-kernel.ts'
import { PrefixBatch } from '../../../src/datapath/prefix-batch.ts'
import { ANY_IDENTITY, worldOf } from '../../../src/identity/reserved.ts'

export interface Write {
  readonly section: ChangeSection
  readonly action: 'upsert' | 'remove'
  /** `10.0.0.0/8`, `1 16777216 6 443/16`, or an endpoint's number. */
  readonly key: string
}

export interface Place {
  readonly identity: Identity
  readonly addressClass: Identity
}

const NO_WRITES = {
  commits: 0,
  policyUpserts: 0,
  policyRemovals: 0,
  prefixUpserts: 0,
  prefixRemovals: 0,
  endpointUpserts: 0,
  endpointRemovals: 0,
}

export class Recorder implements Datapath {
  readonly kind = 'memory'
  /** By `10.0.0.0/8`. In an endpoint's own scope by `192.0.2.1/32@1`. */
  readonly prefixes = new Map<
    string,
    Place & { readonly prefix: Prefix; readonly scope?: number }
  >()
  readonly policies = new Map<string, PolicyEntry>()
  /** Prefixes of each length. */
  readonly #lengths = { 4: new Int32Array(33), 6: new Int32Array(129) }
  /** Policies of each number of port bits. */
  readonly #portBits = new Int32Array(17)
  readonly endpoints = new Map<EndpointId, EndpointEntry>()
  /** Connections that a scan reports. */
  readonly connections: { readonly endpoint: EndpointId; readonly peer: Prefix }[] = []
  writes = { ...NO_WRITES }
  refuse: (write: Write) => boolean = () => false
  /** Called after every write that is not refused. */
  onWrite: (write: Write) => void = () => undefined
  #mode: Mode = 'enforce'
  /** State of every hook. */
  hook: HookState = { kind: 'unfenced' }

  readonly mode: ModeSwitch = { set: (mode) => (this.#mode = mode), read: () => this.#mode }
  readonly hooks: HookControl = {
    refresh: () => [],
    watch: () => false,
    stateOf: () => this.hook,
    keyOf: keyOfHook,
  }
  readonly fences = NO_FENCES
  readonly exceptions = new NoExceptions()
  readonly adoption = NO_ADOPTION
  readonly peers: PeerTable = { ...NO_PEERS, scan: () => this.#scan() }
  readonly reports: PacketReports = { drain: () => undefined, counters: () => this.writes }
  readonly repair = NO_REPAIR

  readAhead(): void {}

  start(): DatapathDump {
    return this.dump()
  }

  /** The writes since the last call. */
  takeWrites(): typeof NO_WRITES {
    const writes = this.writes
    this.writes = { ...NO_WRITES }
    return writes
  }

  commit(changes: Changes): CommitResult | undefined {
    return this.apply(changes)
  }

  /** Applies a commit at once. */
  protected apply(changes: Changes): CommitResult {
    const failures: CommitFailure[] = []
    this.writes.commits++
    const each = (write: Write, index: number, apply: () => void): void => {
      if (this.refuse(write)) {
        failures.push({ section: write.section, action: write.action, index, code: 'ENOSPC' })
        return
      }
      apply()
      this.onWrite(write)
    }
    this.#upsertPolicies(changes.policyUpserts, each)
    this.#upsertPrefixes(changes.prefixUpserts, each)
    changes.endpointUpserts.forEach((entry, i) => {
      each({ section: 'endpoint', action: 'upsert', key: String(entry.id) }, i, () => {
        this.endpoints.set(entry.id, entry)
        this.writes.endpointUpserts++
      })
    })
    changes.endpointRemovals.forEach((id, i) => {
      each({ section: 'endpoint', action: 'remove', key: String(id) }, i, () => {
        this.endpoints.delete(id)
        this.writes.endpointRemovals++
      })
    })
    this.#removePrefixes(changes.prefixRemovals, each)
    this.#removePolicies(changes.policyRemovals, each)
    return failures
  }

  /** The port's verdict about a packet of an enforced endpoint to an address, without mode and connections. */
  verdict(endpoint: EndpointId, peer: Prefix, protocol: number, port: number): Verdict {
    const { identity: id, addressClass } = this.placeOf(peer, endpoint)
    const found = [id, addressClass, ANY_IDENTITY].map(
      (key) => this.#lookup(endpoint, key, protocol, port)?.verdict,
    )
    if (found.includes('deny')) return 'deny'
    const isNoted = found.includes('audit-deny') || found.includes('audit-pass')
    if (found.includes('allow')) return isNoted ? 'audit' : 'allow'
    return found.includes('audit') || found.includes('audit-pass') ? 'audit' : 'deny'
  }

  /** Identity and class of an address by longest match. A scoped endpoint looks in its own host entries first. */
  placeOf(peer: Prefix, endpoint?: EndpointId): Place {
    if (endpoint !== undefined && this.endpoints.get(endpoint)?.scoped === true) {
      const own = this.prefixes.get(keyOfPrefix(peer, endpoint))
      if (own !== undefined) return own
    }
    for (let length = widthOf(peer.family); length >= 0; length--) {
      if (this.#lengths[peer.family][length] === 0) continue
      const found = this.prefixes.get(formatPrefix(truncatePrefix(peer, length)))
      if (found !== undefined) return found
    }
    return { identity: worldOf(peer.family), addressClass: worldOf(peer.family) }
  }

  dump(): DatapathDump {
    const prefixes = new PrefixBatch()
    for (const { prefix, identity: id, addressClass, scope } of this.prefixes.values()) {
      prefixes.add(prefix, id, addressClass, scope)
    }
    const endpoints = [...this.endpoints.values()].map((entry) => ({
      ...entry,
      scoped: entry.scoped === true,
      hookKey: keyOfHook(entry.hook),
    }))
    return { mode: this.mode.read(), prefixes, policies: [...this.policies.values()], endpoints }
  }

  *dumpInSlices(): Generator<undefined, DatapathDump> {
    yield undefined
    return this.dump()
  }

  onCommitted(_listener: (result: CommitResult) => void): void {}

  stop(): void {}

  #scan(): PeerScan {
    const left = [...this.connections]
    return {
      next: (limit, visit) => {
        for (const { endpoint, peer } of left.splice(0, limit)) {
          visit(endpoint, peer.family, peer.octets)
        }
        return left.length === 0
      },
    }
  }

  /** Longest match on (protocol, port): exact protocol and most port bits first, protocol 0 last. */
  #lookup(
    endpoint: EndpointId,
    id: Identity,
    protocol: number,
    port: number,
  ): PolicyEntry | undefined {
    for (let portBits = 16; portBits >= 0; portBits--) {
      if (this.#portBits[portBits] === 0) continue
      const masked = portBits === 0 ? 0 : (port >> (16 - portBits)) << (16 - portBits)
      const key = { endpoint, identity: id, protocol, port: masked, portBits }
      const found = this.policies.get(keyOfPolicy(key))
      if (found !== undefined) return found
    }
    return this.policies.get(
      keyOfPolicy({ endpoint, identity: id, protocol: 0, port: 0, portBits: 0 }),
    )
  }

  #upsertPolicies(entries: readonly PolicyEntry[], each: Apply): void {
    entries.forEach((entry, i) => {
      const key = keyOfPolicy(entry)
      each({ section: 'policy', action: 'upsert', key }, i, () => {
        if (!this.policies.has(key)) this.#portBits[entry.portBits]!++
        this.policies.set(key, entry)
        this.writes.policyUpserts++
      })
    })
  }

  #removePolicies(entries: readonly PolicyKey[], each: Apply): void {
    entries.forEach((entry, i) => {
      const key = keyOfPolicy(entry)
      each({ section: 'policy', action: 'remove', key }, i, () => {
        if (this.policies.delete(key)) this.#portBits[entry.portBits]!--
        this.writes.policyRemovals++
      })
    })
  }

  #upsertPrefixes(batch: PrefixBatch, each: Apply): void {
    for (let i = 0; i < batch.count; i++) {
      const prefix = batch.prefix(i)
      const scope = batch.scope(i)
      const key = keyOfPrefix(prefix, scope)
      each({ section: 'prefix', action: 'upsert', key }, i, () => {
        const place = { identity: batch.identity(i), addressClass: batch.addressClass(i), scope }
        if (!this.prefixes.has(key)) this.#lengths[prefix.family][prefix.length]!++
        this.prefixes.set(key, { ...place, prefix })
        this.writes.prefixUpserts++
      })
    }
  }

  #removePrefixes(batch: PrefixBatch, each: Apply): void {
    for (let i = 0; i < batch.count; i++) {
      const prefix = batch.prefix(i)
      const key = keyOfPrefix(prefix, batch.scope(i))
      each({ section: 'prefix', action: 'remove', key }, i, () => {
        if (this.prefixes.delete(key)) this.#lengths[prefix.family][prefix.length]!--
        this.writes.prefixRemovals++
      })
    }
  }
}

function keyOfHook(hook: EndpointEntry['hook']): string {
  return hook.kind === 'none' ? '' : hook.kind === 'cgroup' ? hook.path : hook.name
}

export type Verdict = 'allow' | 'deny' | 'audit'

type Apply = (write: Write, index: number, apply: () => void) => void

/** `192.0.2.1/32`, in an endpoint's own scope `192.0.2.1/32@1`. */
export function keyOfPrefix(prefix: Prefix, scope: number): string {
  const text = formatPrefix(prefix)
  return scope === 0 ? text : `${text}@${scope}`
}

/** `endpoint identity protocol port/bits`. */
export function keyOfPolicy({ endpoint, identity, protocol, port, portBits }: PolicyKey): string {
  return `${endpoint} ${identity} ${protocol} ${port}/${portBits}`
}
