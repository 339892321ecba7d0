// EndpointMap holds the wanted policy map of one endpoint. Only PolicyMaps writes to it.

import type { EndpointId, Identity } from '../core/ids.ts'
import type { FlatEntry } from '../policy/compile/flatten.ts'
import type { EndpointRules } from './flat-rules.ts'

export interface EndpointMap {
  readonly endpoint: EndpointId
  rules: EndpointRules
  readonly entries: Map<Identity, readonly FlatEntry[]>
  /** How many policy entries the map has. */
  size: number
  /** The identities in the map that answers made. */
  readonly dynamic: Set<Identity>
  /** How many policy entries the identities in `dynamic` have. */
  dynamicSize: number
  /** How many further policy entries are promised to identities that the next commit adds. */
  reserved: number
}

/** Makes an empty map. */
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
