// The needs of the contract suite from an adapter, and short forms for its commits and packets.

import assert from 'node:assert/strict'
import { endpointId, generation, identity, ruleId, type EndpointId } from '../../src/core/ids.ts'
import { parsePrefix, type Prefix } from '../../src/core/ip.ts'
import type {
  Changes,
  CommitResult,
  EndpointEntry,
  Hook,
  ListenerEntry,
  PolicyEntry,
  PolicyVerdict,
} from '../../src/datapath/entries.ts'
import type { Datapath } from '../../src/datapath/datapath.ts'
import { NftablesDatapath } from '../../src/datapath/nftables/adapter.ts'
import { PrefixBatch } from '../../src/datapath/prefix-batch.ts'
import { address } from '../support/packets.ts'

export type Direction = 'from' | 'to'

export interface Sizes {
  readonly prefixes?: number
  readonly policies?: number
  readonly connectionsPerEndpoint?: number
  readonly connections?: number
  readonly adopted?: number
  readonly tcpIdleMs?: number
  readonly udpIdleMs?: number
}

/** A started datapath under test, in a place of its own. */
export interface Bench {
  readonly datapath: Datapath
  judge(endpoint: EndpointId, direction: Direction, frame: Uint8Array): 'pass' | 'drop'
  /** Interface hooks, 1 to 3. */
  interfaceHook(n: number): Hook
  cgroupHook(): Hook
  /** Index of interface hook `n`. */
  ifindex(n: number): number
  /** Stops with `leaveEnforcing` and starts again, like a restarted daemon. */
  restart(): void
  close(): void
}

/** The abilities that the port leaves open. An adapter that lacks one gives the reason. */
export type Ability =
  /** Endpoints can be cgroups. */
  | 'cgroups'
  /** Interfaces of endpoints can be ports of a bridge. */
  | 'bridges'
  /** Packets are read after VLAN tags. */
  | 'tags'
  /** Each fragment is judged alone. */
  | 'fragments'
  /** Every malformed packet is counted, also one that the kernel itself refuses. */
  | 'malformed'
  /** Extension headers are bounded. */
  | 'extensions'
  /** A forged RST does not end a connection, with any sequence number. */
  | 'forged'
  /** SCTP packets are followed with any chunks. */
  | 'sctp'
  /** Open connections are bounded per endpoint. */
  | 'connections'
  /** Flows that were not learned because the table was full are counted. */
  | 'learned'

export interface BenchMaker {
  /** What this adapter lacks, with the reason. */
  readonly lacks?: Partial<Readonly<Record<Ability, string>>>
  readonly name: string
  /** The reason why it cannot be made here. Undefined if it can. */
  readonly unavailable: string | undefined
  make(sizes?: Sizes): Bench
}

/** The reason why a test of an ability is skipped, or false. */
export function skipOf(maker: BenchMaker, ability: Ability): string | false {
  return maker.unavailable ?? maker.lacks?.[ability] ?? false
}

export const ALLOW = 'allow'
export const POD = endpointId(5)
export const POD_4 = '10.0.1.5'
export const POD_6 = 'fd00::5'
export const PEER_4 = '192.0.2.1'
export const PEER_6 = '2001:db8::1'
/** A local identity and its class. */
export const LEARNED = 2 ** 24 + 7
export const WORLD_4 = 9
export const WORLD_6 = 10

export function prefix(text: string): Prefix {
  const result = parsePrefix(text)
  assert.ok(result.kind === 'ok', text)
  return result.prefix
}

/** `[prefix, identity, class, scope]` rows as a batch. Without a scope: the node's. */
export function batch(
  rows: readonly (readonly [text: string, id: number, kind: number, scope?: number])[],
): PrefixBatch {
  const entries = new PrefixBatch()
  for (const [text, id, kind, scope] of rows) {
    entries.add(prefix(text), identity(id), identity(kind), scope)
  }
  return entries
}

export interface PolicyRow {
  readonly endpoint?: EndpointId
  readonly identity?: number
  readonly protocol?: number
  readonly port?: number
  readonly portBits?: number
  readonly verdict?: PolicyVerdict
  readonly rule?: number
}

/** By default: endpoint POD, any identity, any protocol, allow. */
export function policy(row: PolicyRow): PolicyEntry {
  const port = row.port ?? 0
  return {
    endpoint: row.endpoint ?? POD,
    identity: identity(row.identity ?? 0),
    protocol: row.protocol ?? 0,
    port,
    portBits: row.portBits ?? (port === 0 ? 0 : 16),
    verdict: row.verdict ?? 'allow',
    rule: ruleId(row.rule ?? 1),
  }
}

export function endpoint(more: Partial<EndpointEntry> & { readonly hook: Hook }): EndpointEntry {
  return {
    id: POD,
    generation: generation(1),
    enforcing: true,
    audit: false,
    sources: [prefix(POD_4), prefix(POD_6)],
    ...more,
  }
}

export function listener(text: string, port: number): ListenerEntry {
  return { family: text.includes(':') ? 6 : 4, octets: address(text), port }
}

export function commit(datapath: Datapath, changes: Partial<Changes>): CommitResult {
  const result = datapath.commit({
    policyUpserts: [],
    prefixUpserts: new PrefixBatch(),
    endpointUpserts: [],
    endpointRemovals: [],
    prefixRemovals: new PrefixBatch(),
    policyRemovals: [],
    ...changes,
  })
  return result ?? finish(datapath)
}

/** Waits for the end of a pending commit. */
function finish(datapath: Datapath): CommitResult {
  let result: CommitResult | undefined
  datapath.onCommitted((each) => (result = each))
  if (datapath instanceof NftablesDatapath) datapath.finishCommit()
  assert.ok(result, 'the datapath reported the end of the commit')
  return result
}

/** Puts endpoint POD on interface hook 1 with these entries, and both peers under LEARNED. */
export function settle(
  bench: Bench,
  policies: readonly PolicyEntry[],
  more: Partial<EndpointEntry> = {},
): void {
  const failures = commit(bench.datapath, {
    policyUpserts: policies,
    prefixUpserts: batch([
      [`${PEER_4}/32`, LEARNED, WORLD_4],
      [`${PEER_6}/128`, LEARNED, WORLD_6],
    ]),
    endpointUpserts: [endpoint({ hook: bench.interfaceHook(1), ...more })],
  })
  assert.deepEqual(failures, [])
}
