// The functions here derive the labels and the class of a prefix from its facts and from its container. The container is the longest
// other prefix with facts that contains the prefix. The functions are pure, and follow CFP-28427 ("CIDR Label down-propagation", "Only
// generate terminal CIDR labels"):
//   - The own labels of a prefix are the union over its facts. `mergeFacts` decides when two owners give one key different values.
//   - The prefix inherits each label of its container whose key is not among its own labels.
//   - If a prefix then has several `cidr:` labels, only the one with the longest prefix stays.
//   - Addresses of the node, of known endpoints and of external resources have no `cidr:` label at all. With
//     `policies.cidr-matches-endpoints` they have one, like other prefixes.
//   - Every other prefix gets `reserved:world` and `reserved:world-ipv4` or `-ipv6`.
//
// If `Deriver` has derived a combination of labels before, it needs one probe of a direct-mapped cache.

import { type Identity, identity } from '../core/ids.ts'
import type { Family } from '../core/ip.ts'
import { EMPTY_SET, type Label, type LabelSets, longestCidr } from '../core/labels.ts'
import { ENDPOINT_CLASS, HOST, RESOURCE_CLASS, worldOf } from '../identity/reserved.ts'
import {
  type Facts,
  OWNER_ENDPOINT,
  OWNER_NAME,
  OWNER_NODE,
  OWNER_PEER,
  OWNER_POLICY,
} from './facts.ts'
import type { PrefixTable } from './prefix-table.ts'

const CACHE = 1 << 14

/** Returns true if addresses of the class belong to the node, an endpoint or a resource, and false if they belong to the world. */
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

  /** Returns the label sets that this object retains. Checks of the tables use it. */
  held(): readonly number[] {
    return [this.#world[4], this.#world[6]]
  }

  /** Returns the label set of a prefix with the own labels `own`. `around`: the label set of its container, EMPTY_SET without one. */
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

  /**
   * Returns true if a prefix with this label set gets the identity HOST, which the addresses of the node share. With
   * `policies.cidr-matches-endpoints`, an address of the node that has a `cidr:` label gets another identity.
   */
  isHost(set: number, addressClass: Identity): boolean {
    if (addressClass !== HOST) return false
    return !this.#knownHaveCidr || this.#sets.get(set).cidr === undefined
  }

  #compute(own: number, around: number, known: boolean, family: Family): number {
    // Most learned addresses have own labels only, because they are in no container.
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

/** The result of `mergeFacts`. */
export interface Merged {
  /** The label set of the prefix's own facts. */
  readonly set: number
  /** How often two owners gave the same key different values. */
  readonly conflicts: number
}

/**
 * Returns the union of the labels of a prefix's facts. `first` is the first fact. If two owners give the same key different values, the
 * kind that comes first in OWNER_KINDS wins. Between owners of one kind, the owner with the smaller text wins. Facts of names and policies
 * cannot conflict, because the key of a fqdn or cidr label is the whole label. A peer gives no labels to an address of the node or of an
 * endpoint.
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
      // Most prefixes from the configuration have only one fact.
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

/** Returns true if the prefix has no other fact and no two labels of the fact have the same key. Its set is then the merged set. */
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
  let ordered: { readonly kind: number; readonly text: string; readonly set: number }[] = []
  for (let fact = first; fact !== 0; fact = facts.next[fact]!) {
    const kind = facts.kind[fact]!
    ordered.push({ kind, text: ownerText(kind, facts.owner[fact]!), set: facts.set[fact]! })
  }
  // A pod of another node gives no labels to an address of this node.
  const isOfNode = ordered.some(({ kind }) => kind <= OWNER_ENDPOINT)
  if (isOfNode) ordered = ordered.filter(({ kind }) => kind !== OWNER_PEER)
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
 * Returns the class of a prefix: HOST, ENDPOINT_CLASS, RESOURCE_CLASS or a class of the world. If the prefix has facts of the
 * node, an endpoint, a resource or a peer, the first of these kinds decides. If it has none, its container decides. `around`: the
 * row of the container, 0 without one.
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
  if (kind <= OWNER_PEER) return RESOURCE_CLASS
  const inherited = identity(prefixes.addressClass[around]!)
  return isKnownClass(inherited) ? inherited : worldOf(prefixes.family(row))
}
