// Says which pods of other nodes this node does not know, for views and warnings.

import type { CollectionState } from './reflector/collection-events.ts'

/** Pods of other nodes that this node does not know. */
export interface UnknownPods {
  /** Why it does not know them, as a sentence. Empty if it knows them all. */
  readonly reason: string
  /** The namespaces whose pods it knows nevertheless. */
  readonly except: readonly string[]
}

export interface KnownPods {
  /** `kubernetes.peers` and `kubernetes.namespaces`. */
  readonly peers: 'none' | 'watch'
  readonly namespaces: readonly string[]
  /** How many pods of other nodes are known, and how many are beyond the bound. */
  readonly count: number
  readonly waiting: number
  /** The targets of the collection. */
  readonly parts: readonly {
    readonly state: CollectionState
    readonly reason: string
    readonly currentAt: number | undefined
  }[]
}

export function unknownPodsOf({
  peers,
  namespaces,
  count,
  waiting,
  parts,
}: KnownPods): UnknownPods {
  const none = 'this node does not know the pods of other nodes'
  const all = (reason: string): UnknownPods => ({ reason, except: [] })
  if (peers === 'none') return all(`${none} (kubernetes.peers is none)`)
  // Before the first list, the pods of the daemon before are known.
  const missing = parts.find(
    ({ state, currentAt }) => currentAt === undefined && (count === 0 || state === 'forbidden'),
  )
  if (missing !== undefined) return all(`${none} yet: ${missing.reason}`)
  if (waiting > 0) {
    return all(`this node knows ${count} of ${count + waiting} pods of other nodes (limits.peers)`)
  }
  if (namespaces.length === 0) return all('')
  const reason = 'this node knows no pods of namespaces that are not among kubernetes.namespaces'
  return { reason, except: namespaces }
}
