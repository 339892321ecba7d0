// Holds the policies of a cluster. A new version is in force at once, or its faults are reported and the last good version stays. A removed
// policy stays in force for a while (removal-hold.ts).

import type { Clock } from '../../core/clock.ts'
import type { Fault } from '../../core/errors.ts'
import type { Policy } from '../../policy/rule.ts'
import type { ReceivedItems } from '../../sources/files/given-items.ts'
import type { Collection } from '../reflector/collections.ts'
import type { KeptObjects } from './kept-objects.ts'
import type { KubernetesObject, ObjectKind } from '../reflector/objects.ts'
import { RemovalHold } from './removal-hold.ts'

export interface ClusterPoliciesOptions {
  readonly clock: Clock
  readonly collection: Collection
  readonly massRemoval: { readonly share: number; readonly holdMs: number }
  readonly kept: KeptObjects | undefined
  /** Reads the document of a policy. `name` is the name of the object in faults. */
  readonly parse: (
    document: unknown,
    name: string,
  ) => { readonly items: readonly Policy[]; readonly faults: readonly Fault[] }
  /** Called when removals take effect without an event. */
  readonly onRemoved: () => void
  /** Called when removals start to be held, and when they have taken effect. */
  readonly onHold: (isHolding: boolean) => void
}

/** A policy whose present version has faults. */
export interface FaultyPolicy extends ObjectKind {
  readonly namespace: string | undefined
  readonly name: string
  readonly uid: string
  readonly faults: readonly Fault[]
  /** True if an earlier version had no faults. It stays in force. */
  readonly hasLastGood: boolean
}

/** `kubectl apply` stores the whole object in this annotation. */
const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration'

export class ClusterPolicies {
  readonly hold: RemovalHold
  readonly #options: ClusterPoliciesOptions
  /** The documents of the policies that the cluster has, and of those that wait for their removal, as JSON. */
  readonly #documents = new Map<string, { readonly uid: string; readonly text: string }>()
  readonly #faulty = new Map<string, FaultyPolicy>()
  #changes = new Map<string, ReceivedItems<Policy> | undefined>()

  constructor(options: ClusterPoliciesOptions) {
    const { clock, massRemoval, kept, onHold } = options
    this.#options = options
    this.hold = new RemovalHold({
      clock,
      ...massRemoval,
      count: () => this.#documents.size,
      remove: (names) => this.#drop(names),
      keepHeld: (name, isHeld) => kept?.markHeld(name, isHeld),
      onHold,
    })
  }

  get count(): number {
    return this.#documents.size
  }

  get faulty(): ReadonlyMap<string, FaultyPolicy> {
    return this.#faulty
  }

  /** The UID of a policy that the cluster has. */
  uidOf(name: string): string | undefined {
    return this.hold.has(name) ? undefined : this.#documents.get(name)?.uid
  }

  /** The names of the policies that the cluster has. */
  names(): readonly string[] {
    return [...this.#documents.keys()].filter((name) => !this.hold.has(name))
  }

  set(name: string, object: KubernetesObject): void {
    const { parse, kept, collection } = this.#options
    const document = documentOf(object, collection)
    const text = JSON.stringify(document)
    this.hold.back(name)
    const before = this.#documents.get(name)
    if (before?.text === text) return
    const { uid, namespace, name: ownName } = object.metadata
    this.#documents.set(name, { uid, text })
    const { items, faults } = parse(document, name)
    if (faults.length > 0) {
      const { apiVersion, kind } = collection
      const hasLastGood = this.#faulty.get(name)?.hasLastGood ?? before !== undefined
      const about = { apiVersion, kind, namespace, name: ownName, uid }
      this.#faulty.set(name, { ...about, faults, hasLastGood })
    } else {
      this.#faulty.delete(name)
      kept?.keep(name, text)
    }
    this.#changes.set(name, { digest: text, items, faults })
  }

  remove(name: string): void {
    if (this.#documents.has(name)) this.hold.add(name)
  }

  /** Returns the changes since the last call. */
  takeChanges(): ReadonlyMap<string, ReceivedItems<Policy> | undefined> {
    const changes = this.#changes
    this.#changes = new Map()
    return changes
  }

  #drop(names: readonly string[]): void {
    for (const name of names) {
      this.#documents.delete(name)
      this.#faulty.delete(name)
      this.#options.kept?.keep(name, undefined)
      this.#changes.set(name, undefined)
    }
    this.#options.onRemoved()
  }
}

/** Returns the document as in a file. It stays the same while only the status or the records of writers change. */
function documentOf(object: KubernetesObject, { apiVersion, kind }: Collection): unknown {
  const { name, namespace, uid, labels, annotations } = object.metadata
  const written = Object.entries(annotations ?? {}).filter(([key]) => key !== LAST_APPLIED)
  const { spec, specs } = object
  const metadata = { name, namespace, uid, labels, annotations: Object.fromEntries(written) }
  return { apiVersion, kind, metadata, spec, specs }
}
