// External resources: labels on addresses and prefixes that no client of ours has. Facts only.

import type { Prefix } from '../core/ip.ts'
import { OWNER_RESOURCE } from '../ipcache/facts.ts'
import { ConfigFacts } from './config-facts.ts'
import type { CoreState } from './core-state.ts'

/** A resource as a source knows it. */
export interface Resource {
  readonly name: string
  readonly addresses: readonly Prefix[]
  readonly labels: readonly string[]
}

export class ResourceControl {
  readonly #facts: ConfigFacts
  #resources: readonly Resource[] = []

  constructor(options: { readonly core: CoreState }) {
    this.#facts = new ConfigFacts(options)
  }

  get resources(): readonly Resource[] {
    return this.#resources
  }

  /** Makes the resources exactly these; the caller then runs the transition. */
  apply(resources: readonly Resource[]): void {
    this.#resources = resources
    this.#facts.apply(
      resources.flatMap(({ name, addresses, labels }) =>
        addresses.map((prefix) => ({ prefix, kind: OWNER_RESOURCE, owner: name, labels })),
      ),
    )
  }
}
