// Fencing closes the interfaces that the listeners name and no endpoint has. At the first start with a cluster it waits until the known pods
// are in force. Otherwise an API server that does not answer would cut off every pod that already runs on the node.

import type { Config } from '../config/config.ts'
import type { Datapath } from '../datapath/datapath.ts'
import { fencedPatterns } from './parts.ts'

export interface FencingParts {
  readonly config: Config
  readonly datapath: Pick<Datapath, 'fences'>
  readonly transition: { readonly pending: boolean }
  /** Undefined without a cluster. */
  readonly cluster: { readonly objects: { readonly isComplete: boolean } } | undefined
}

export class Fencing {
  readonly #parts: FencingParts
  readonly #hasEnforced: () => boolean
  #isSet = false

  /** `hasEnforced` returns true if the kernel had endpoints at the start. Fences of the daemon before must then stay. */
  constructor(parts: FencingParts, hasEnforced: () => boolean) {
    this.#parts = parts
    this.#hasEnforced = hasEnforced
  }

  /** Sets the fences when the endpoints are known. Call it at the start, when the endpoints of files are in force, and once a second. */
  look(): void {
    const { config, datapath, transition, cluster } = this.#parts
    if (this.#isSet) return
    const mustWait = cluster !== undefined && !this.#hasEnforced()
    if (mustWait && (!cluster.objects.isComplete || transition.pending)) return
    this.#isSet = true
    datapath.fences.set(fencedPatterns(config))
  }
}
