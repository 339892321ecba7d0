// The wanted policy map of one endpoint. Written by the policy maps alone.

import type { EndpointId, Identity } from '../core/ids.ts'
import type { FlatEntry } from '../policy/compile/flatten.ts'
import type { EndpointRules } from './flat-rules.ts'

export interface EndpointMap {
  readonly endpoint: EndpointId
  rules: EndpointRules
  readonly entries: Map<Identity, readonly FlatEntry[]>
  size: number
  /** Identities that count as dynamic here, and how many of the entries are theirs. */
  readonly dynamic: Set<Identity>
  dynamicSize: number
  /** Entries promised to dynamic identities that the next commit enters. */
  reserved: number
}

export function newMap(endpoint: EndpointId, rules: EndpointRules): EndpointMap {
  return {
    endpoint,
    rules,
    entries: new Map(),
    size: 0,
    dynamic: new Set(),
    dynamicSize: 0,
    reserved: 0,
  }
}
