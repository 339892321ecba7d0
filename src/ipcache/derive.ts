// From the labels of a prefix's own facts and the labels of the prefix around it to its labels: the pure
// heart of CFP-28427 ("CIDR Label down-propagation", "Only generate terminal CIDR labels").
//   - own labels win; labels of the containing prefix come along unless a key is already there;
//   - of `cidr:` labels only the longest survives;
//   - addresses of the node, of known endpoints and of external resources neither carry nor inherit
//     `cidr:` labels, unless `policies.cidr-matches-endpoints`; every other prefix carries `reserved:world` and `reserved:world-ipv4` or `-ipv6`.
// Costs one probe of a direct-mapped cache for a combination seen before.

import type { Identity } from '../core/ids.ts'
import type { Family } from '../core/ip.ts'
import { EMPTY_SET, longestCidr, type Label, type LabelSets } from '../core/labels.ts'
import { ENDPOINT_CLASS, HOST, RESOURCE_CLASS } from '../identity/reserved.ts'

const CACHE = 1 << 14

/** Whether addresses of the class are the node's, an endpoint's or a resource's, not the world's. */
export function isKnownClass(addressClass: Identity): boolean {
  return addressClass === HOST || addressClass === ENDPOINT_CLASS || addressClass === RESOURCE_CLASS
}

export class Deriver {
  readonly #sets: LabelSets
  readonly #keys = new Int32Array(CACHE * 3)
  readonly #results = new Int32Array(CACHE)
  readonly #knownHaveCidr: boolean
  readonly #world: { readonly 4: number; readonly 6: number }

  constructor(options: { readonly labelSets: LabelSets; readonly knownHaveCidr?: boolean }) {
    const sets = options.labelSets
    this.#sets = sets
    this.#knownHaveCidr = options.knownHaveCidr ?? false
    this.#world = {
      4: sets.intern(['reserved:world', 'reserved:world-ipv4']),
      6: sets.intern(['reserved:world', 'reserved:world-ipv6']),
    }
    sets.retain(this.#world[4])
    sets.retain(this.#world[6])
  }

  /** Label sets that are retained here. */
  held(): readonly number[] {
    return [this.#world[4], this.#world[6]]
  }

  /** The label set of a prefix. `around` is that of the containing prefix, EMPTY_SET without one. */
  derive(own: number, around: number, addressClass: Identity, family: Family): number {
    const kind = (isKnownClass(addressClass) ? 1 : 0) + (family === 4 ? 2 : 4)
    const slot = (Math.imul(own, 0x9e3779b1) ^ Math.imul(around, 0x85ebca6b) ^ kind) & (CACHE - 1)
    const keys = this.#keys
    if (keys[slot * 3] === own && keys[slot * 3 + 1] === around && keys[slot * 3 + 2] === kind) {
      const known = this.#results[slot]!
      if (this.#sets.has(known)) return known
    }
    const result = this.#compute(own, around, isKnownClass(addressClass), family)
    keys[slot * 3] = own
    keys[slot * 3 + 1] = around
    keys[slot * 3 + 2] = kind
    this.#results[slot] = result
    return result
  }

  /** Whether a label set is that of the node: one identity, unless CIDR rules are to tell its addresses apart. */
  isHost(set: number, addressClass: Identity): boolean {
    if (addressClass !== HOST) return false
    return !this.#knownHaveCidr || this.#sets.get(set).cidr === undefined
  }

  #compute(own: number, around: number, known: boolean, family: Family): number {
    // Most names: a label of their own, and nothing around their addresses.
    const isPlain = !known && around === EMPTY_SET && this.#sets.get(own).cidr === undefined
    if (isPlain) return this.#sets.union(own, this.#world[family])
    const ownLabels = this.#sets.get(own).labels
    const keys = new Set(ownLabels.map((label) => label.key))
    const inherited = this.#sets.get(around).labels.filter((label) => !keys.has(label.key))
    const labels = [...ownLabels, ...inherited]
    const longest = known && !this.#knownHaveCidr ? undefined : longestCidr(labels)
    if (known) {
      return this.#sets.internLabels(
        labels.filter(
          (label) => (label.kind !== 'cidr' || label === longest) && !isWorldLabel(label),
        ),
      )
    }
    const terminal = labels.filter((label) => label.kind !== 'cidr' || label === longest)
    const plain = this.#sets.internLabels(terminal)
    return plain === EMPTY_SET ? this.#world[family] : this.#sets.union(plain, this.#world[family])
  }
}

function isWorldLabel(label: Label): boolean {
  return label.text === 'reserved:world' || label.text.startsWith('reserved:world-')
}
