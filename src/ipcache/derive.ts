// From the facts of a prefix and the prefix around it to its labels and its class: the pure heart of CFP-28427 ("CIDR Label
// down-propagation", "Only generate terminal CIDR labels").
//   - A prefix's own labels are the union over its facts. `mergeFacts` settles conflicts between owners.
//   - Own labels win. Labels of the containing prefix are added unless their key is already there.
//   - Of `cidr:` labels only the longest survives.
//   - Addresses of the node, of known endpoints and of external resources neither carry nor inherit `cidr:` labels, unless
//     `policies.cidr-matches-endpoints` is on. Every other prefix carries `reserved:world` and `reserved:world-ipv4` or `-ipv6`.
// `Deriver` costs one probe of a direct-mapped cache for a combination seen before.

import { type Identity, identity } from '../core/ids.ts'
import type { Family } from '../core/ip.ts'
import { EMPTY_SET, type Label, type LabelSets, longestCidr } from '../core/labels.ts'
import { ENDPOINT_CLASS, HOST, RESOURCE_CLASS, worldOf } from '../identity/reserved.ts'
import {
  type Facts,
  OWNER_ENDPOINT,
  OWNER_NAME,
  OWNER_NODE,
  OWNER_POLICY,
  OWNER_RESOURCE,
} from './facts.ts'
import type { PrefixTable } from './prefix-table.ts'

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

/** The labels of a prefix's own facts. */
export interface Merged {
  readonly set: number
  readonly conflicts: number
}

/**
 * The union over the owners of a prefix's facts. Where two owners claim the same key, the earlier kind wins (node, endpoint,
 * resource, name, policy), then the smaller owner text, and the conflict is counted. Facts of names and policies cannot conflict:
 * a fqdn or cidr label is its own key.
 */
export function mergeFacts(
  facts: Facts,
  first: number,
  sets: LabelSets,
  ownerText: (kind: number, owner: number) => string,
): Merged {
  let union = EMPTY_SET
  let last = EMPTY_SET
  for (let fact = first; fact !== 0; fact = facts.next[fact]!) {
    const kind = facts.kind[fact]!
    if (kind !== OWNER_NAME && kind !== OWNER_POLICY) {
      // Most prefixes of configuration have one owner.
      return isAlone(facts, first, sets)
        ? { set: facts.set[first]!, conflicts: 0 }
        : mergeByKey(facts, first, sets, ownerText)
    }
    const set = facts.set[fact]!
    if (set !== last) union = sets.union(union, set)
    last = set
  }
  return { set: union, conflicts: 0 }
}

/** Whether the fact is the only one and no two of its labels have the same key: then its set is what it says. */
function isAlone(facts: Facts, fact: number, sets: LabelSets): boolean {
  if (facts.next[fact] !== 0) return false
  const { labels } = sets.get(facts.set[fact]!)
  for (let i = 1; i < labels.length; i++) {
    for (let j = 0; j < i; j++) if (labels[i]?.key === labels[j]?.key) return false
  }
  return true
}

function mergeByKey(
  facts: Facts,
  first: number,
  sets: LabelSets,
  ownerText: (kind: number, owner: number) => string,
): Merged {
  const ordered: { readonly kind: number; readonly text: string; readonly set: number }[] = []
  for (let fact = first; fact !== 0; fact = facts.next[fact]!) {
    const kind = facts.kind[fact]!
    ordered.push({ kind, text: ownerText(kind, facts.owner[fact]!), set: facts.set[fact]! })
  }
  ordered.sort((a, b) => a.kind - b.kind || (a.text < b.text ? -1 : a.text > b.text ? 1 : 0))
  const byKey = new Map<string, Label>()
  let conflicts = 0
  for (const { set } of ordered) {
    for (const label of sets.get(set).labels) {
      const winner = byKey.get(label.key)
      if (winner === undefined) byKey.set(label.key, label)
      else if (winner !== label) conflicts++
    }
  }
  return { set: sets.internLabels([...byKey.values()]), conflicts }
}

/**
 * The class of a prefix: the node's, a known endpoint's, a resource's or the world's. Its own facts decide, the kind first in
 * precedence; else the prefix around it. `around`: the row of the containing prefix, 0 without one.
 */
export function classOf(
  row: number,
  around: number,
  prefixes: PrefixTable,
  facts: Facts,
): Identity {
  let kind: number = OWNER_NAME
  for (let fact = prefixes.firstFact[row]!; fact !== 0; fact = facts.next[fact]!) {
    kind = Math.min(kind, facts.kind[fact]!)
  }
  if (kind === OWNER_NODE) return HOST
  if (kind === OWNER_ENDPOINT) return ENDPOINT_CLASS
  if (kind === OWNER_RESOURCE) return RESOURCE_CLASS
  const inherited = identity(prefixes.addressClass[around]!)
  return isKnownClass(inherited) ? inherited : worldOf(prefixes.family(row))
}
