// The scope of the labels of a learned address (docs/spec/promises "scope"):
//   learning: node       the labels of the name apply for all endpoints;
//   learning: endpoint   they apply for the endpoint that asked, and the node gets none;
//   a named endpoint     (`default-egress: allow-named` is in force for it) also has `reserved:named` in its own scope, for
//                        everything that it learned by asking, whatever the name.
// Read on the packet path. Facts follow in `Relabel` when `epoch` grew.

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

  /** Grows when the labels in some endpoint's scope are to be looked at again. */
  get epoch(): number {
    return this.#epoch
  }

  /** Whether any endpoint gets labels in a scope of its own. */
  get inUse(): boolean {
    return this.learning === 'endpoint' || this.#namedSet !== EMPTY_SET
  }

  /** Label sets that are retained here, one entry for each reference; for checks. */
  heldSets(): readonly number[] {
    return this.#namedSet === EMPTY_SET ? [] : [this.#namedSet]
  }

  isNamed(endpoint: EndpointId): boolean {
    return this.#named.has(endpoint)
  }

  get hasNamed(): boolean {
    return this.#namedSet !== EMPTY_SET
  }

  /** Begins or ends labelling what the endpoint learns as named; true when that changes anything (`begin` the pass then). */
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

  /** Begins a pass over everything that endpoints learned before. */
  begin(): void {
    this.#epoch++
  }

  /** Labels for the node of an address whose name has these. */
  nodeLabels(nameLabels: number): number {
    return this.learning === 'node' ? nameLabels : EMPTY_SET
  }

  /** Labels in an endpoint's own scope of a guarded address that gets these: never `reserved:named`. */
  ownGuardedLabels(guardedLabels: number): number {
    return this.learning === 'endpoint' ? guardedLabels : EMPTY_SET
  }

  /** Labels in the endpoint's own scope of an address whose name has these. */
  ownLabels(endpoint: EndpointId, nameLabels: number): number {
    const own = this.learning === 'endpoint' ? nameLabels : EMPTY_SET
    return this.#named.has(endpoint) ? this.#sets.union(own, this.#namedSet) : own
  }
}
