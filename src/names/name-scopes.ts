// NameScopes decides which labels a learned address gets in which scope (docs/spec/promises "scope"):
//   learning: node       The labels of the name apply to all endpoints.
//   learning: endpoint   The labels of the name apply to the endpoint that asked. The node's scope gets no labels.
//   named endpoint       An endpoint is named while `default-egress: allow-named` is in force for it. Every address that a named
//                        endpoint learned, by any name, also gets the label `reserved:named` in the endpoint's own scope.
// The packet path reads this. When `epoch` has grown, `Relabel` updates the facts.

import type { EndpointId } from '../core/ids.ts'
import { EMPTY_SET, type LabelSets } from '../core/labels.ts'
import { NAMED_LABEL } from '../identity/reserved.ts'

export type Learning = 'node' | 'endpoint'

export class NameScopes {
  readonly learning: Learning
  readonly #sets: LabelSets
  readonly #named = new Set<EndpointId>()
  /** The set of `reserved:named` alone; retained while any endpoint is named. */
  #namedSet = EMPTY_SET
  #epoch = 1

  constructor(options: { readonly learning: Learning; readonly labelSets: LabelSets }) {
    this.learning = options.learning
    this.#sets = options.labelSets
  }

  /** Grows when `Relabel` has to check the labels in the endpoints' own scopes again. */
  get epoch(): number {
    return this.#epoch
  }

  /** True when any endpoint gets labels in a scope of its own. */
  get inUse(): boolean {
    return this.learning === 'endpoint' || this.#namedSet !== EMPTY_SET
  }

  /** Returns the label sets that this object retains, once for each reference. Checks of the tables use it. */
  heldSets(): readonly number[] {
    return this.#namedSet === EMPTY_SET ? [] : [this.#namedSet]
  }

  isNamed(endpoint: EndpointId): boolean {
    return this.#named.has(endpoint)
  }

  get hasNamed(): boolean {
    return this.#namedSet !== EMPTY_SET
  }

  /** Sets whether the endpoint is named. Returns true if this is a change: the endpoint's known entries then need `begin`. */
  setNamed(endpoint: EndpointId, named: boolean): boolean {
    if (named === this.#named.has(endpoint)) return false
    if (named) this.#named.add(endpoint)
    else this.#named.delete(endpoint)
    if (named && this.#named.size === 1) {
      this.#namedSet = this.#sets.intern([NAMED_LABEL])
      this.#sets.retain(this.#namedSet)
    } else if (this.#named.size === 0) {
      this.#sets.release(this.#namedSet)
      this.#namedSet = EMPTY_SET
    }
    return true
  }

  /** Makes `Relabel` pass over all entries again. */
  begin(): void {
    this.#epoch++
  }

  /** Returns the labels that an address gets in the node's scope when its name has `nameLabels`. */
  nodeLabels(nameLabels: number): number {
    return this.learning === 'node' ? nameLabels : EMPTY_SET
  }

  /** Returns the labels that a guarded address gets in an endpoint's own scope. `reserved:named` is never among them. */
  ownGuardedLabels(guardedLabels: number): number {
    return this.learning === 'endpoint' ? guardedLabels : EMPTY_SET
  }

  /** Returns the labels that an address gets in the endpoint's own scope when its name has `nameLabels`. */
  ownLabels(endpoint: EndpointId, nameLabels: number): number {
    const own = this.learning === 'endpoint' ? nameLabels : EMPTY_SET
    return this.#named.has(endpoint) ? this.#sets.union(own, this.#namedSet) : own
  }
}
