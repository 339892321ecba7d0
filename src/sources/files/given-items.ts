// Items that do not come from a file. They have a name in the place of a path.

import type { Fault } from '../../core/errors.ts'
import type { EndpointRecord } from '../../endpoints/file.ts'
import type { Resource } from '../../enforcement/resource-control.ts'
import type { Policy } from '../../policy/rule.ts'

/** Items that the program sets under a name. They are treated as a file without faults. */
export interface ProgramItems<Item> {
  /** Equal for equal items. Setting items with an equal digest changes nothing. */
  readonly digest: string
  readonly items: readonly Item[]
}

/** A version of an object that a cluster sent. If it has faults, the last version without faults stays in force. */
export interface ReceivedItems<Item> extends ProgramItems<Item> {
  readonly faults: readonly Fault[]
}

/** Versions of a cluster's objects by name (core/object-names.ts). `undefined`: the object is gone. */
export interface ReceivedObjects {
  readonly policies: ReadonlyMap<string, ReceivedItems<Policy> | undefined>
  readonly endpoints: ReadonlyMap<string, ReceivedItems<EndpointRecord> | undefined>
  /** Pods of other nodes, by `namespace/name`. */
  readonly peers: ReadonlyMap<string, Resource | undefined>
}
