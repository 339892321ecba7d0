// `peerAt` shows an address as policy sees it: its identity, class and labels, and the selectors that select it. It reads them from the
// prefix table. With a name, it derives them as they would be after the endpoint learned the address by that name. It uses the derivation
// of real answers (ipcache/derive.ts) and writes nothing, so a daemon can use it while it works.

import { identity, type EndpointId, type Identity } from '../core/ids.ts'
import type { Family, Prefix } from '../core/ip.ts'
import { EMPTY_SET } from '../core/labels.ts'
import { widthOf } from '../core/ip.ts'
import { FIRST_LOCAL, HOST, RESERVED_NAMES, worldOf } from '../identity/reserved.ts'
import type { Selector } from '../identity/selector-cache.ts'
import { isKnownClass } from '../ipcache/derive.ts'
import { GUARDED_UNLESS_SAID, UNGUARDED } from '../names/guard.ts'
import type { CoreState } from '../enforcement/core-state.ts'

/** An address as policy sees it. */
export interface Peer {
  readonly family: Family
  /** Undefined: an assumed address of the family that no configured prefix except /0 contains. */
  readonly address: Prefix | undefined
  /** Undefined: the label set has no identity number yet, and would get one when the answer is learned. */
  readonly identity: Identity | undefined
  readonly addressClass: Identity
  readonly labels: readonly string[]
  readonly selectedBy: readonly Selector[]
  /** True if the guard keeps the name from giving its labels to this address (docs/spec/semantics 4 "guarded"). */
  readonly isGuarded: boolean
}

/** An address as one scope sees it. */
interface View {
  /** The label set; undefined if the scope knows no prefix around the address. */
  readonly set: number | undefined
  readonly identity: Identity | undefined
  readonly addressClass: Identity
}

/** An address, and the endpoint that looks at it. */
interface Place {
  readonly endpoint: EndpointId
  readonly family: Family
  readonly address: Prefix | undefined
}

const NO_OCTETS = new Uint8Array(16)

/** Returns the identity to look up coverages. For a label set without a number, returns a number that no class has. */
export function keyOf(peer: Peer): Identity {
  return peer.identity ?? FIRST_LOCAL
}

/** Looks up an address for an endpoint. `address` undefined: an assumed address. `name` undefined: only what is known already. */
export function peerAt(
  core: CoreState,
  endpoint: EndpointId,
  family: Family,
  address: Prefix | undefined,
  name: Uint8Array | undefined,
): Peer {
  const { scopes, selectorLabels, selectors, labelSets, guard } = core
  const level = address === undefined ? UNGUARDED : guard.levelOf(family, address.octets, 0)
  const nameLabels = name === undefined ? EMPTY_SET : taughtLabels(selectorLabels, name, level)
  const isGuarded = level !== UNGUARDED && nameLabels === EMPTY_SET
  const taught = name !== undefined && !isGuarded
  const place = { endpoint, family, address }
  const node = nodeView(core, place, scopes.nodeLabels(nameLabels))
  const ownOf = (labels: number): number =>
    level === UNGUARDED ? scopes.ownLabels(endpoint, labels) : scopes.ownGuardedLabels(labels)
  const own = taught ? ownOf(nameLabels) : EMPTY_SET
  const view = ownView(core, place, own, node)
  const { set } = view
  const number = view.identity
  const isReserved = number !== undefined && RESERVED_NAMES.has(number)
  return {
    family,
    address,
    identity: number,
    addressClass: view.addressClass,
    labels: set === undefined ? reservedLabels(view) : labelSets.format(set),
    selectedBy:
      set === undefined || isReserved
        ? []
        : number === undefined
          ? selectors.selectorsFor(set)
          : selectors.selectorsOf(number),
    isGuarded,
  }
}

/** Returns the labels that a name gives to an address with this level of guard. */
function taughtLabels(
  labels: CoreState['selectorLabels'],
  name: Uint8Array,
  level: number,
): number {
  if (level === UNGUARDED) return labels.labelsOf(name, 0)
  return level === GUARDED_UNLESS_SAID ? labels.guardedLabelsOf(name, 0) : EMPTY_SET
}

/** Returns the node's view of an address to which a name gives the labels `taught`. */
function nodeView(core: CoreState, { family, address }: Place, taught: number): View {
  const { ipcache, labelSets } = core
  const { prefixes, deriver } = ipcache
  const row = hostRow(core, family, address)
  const host = row !== 0 && prefixes.firstFact[row] !== 0 ? row : 0
  const around =
    host !== 0 ? prefixes.findContainer(host) : containerOf(core, family, address?.octets)
  if (host === 0 && taught === EMPTY_SET) return viewOf(core, family, around)
  const inherited = around === 0 ? worldOf(family) : identity(prefixes.addressClass[around]!)
  const world = isKnownClass(inherited) ? inherited : worldOf(family)
  const addressClass = host === 0 ? world : identity(prefixes.addressClass[host]!)
  const facts = host === 0 ? EMPTY_SET : prefixes.own[host]!
  const labelsAround = around === 0 ? EMPTY_SET : prefixes.derived[around]!
  const set = deriver.derive(labelSets.union(facts, taught), labelsAround, addressClass, family)
  return { set, identity: numberOf(core, host, set, addressClass), addressClass }
}

/** Returns the view in the endpoint's own scope, if it has one or would get one; else the node's view. */
function ownView(
  core: CoreState,
  { endpoint, family, address }: Place,
  taught: number,
  node: View,
): View {
  const { prefixes, deriver } = core.ipcache
  const base = hostRow(core, family, address)
  const row = base === 0 ? 0 : prefixes.scoped.find(endpoint, base)
  const known = row !== 0 && prefixes.firstFact[row] !== 0 ? row : 0
  if (known === 0 && taught === EMPTY_SET) return node
  const facts = known === 0 ? EMPTY_SET : prefixes.own[known]!
  const own = core.labelSets.union(facts, taught)
  const { addressClass } = node
  const set = deriver.derive(own, node.set ?? EMPTY_SET, addressClass, family)
  return { set, identity: numberOf(core, known, set, addressClass), addressClass }
}

/** Returns the identity number that a row with this label set has or would get; undefined if it would get a new number. */
function numberOf(
  { ipcache, allocator }: CoreState,
  row: number,
  set: number,
  addressClass: Identity,
): Identity | undefined {
  if (ipcache.deriver.isHost(set, addressClass)) return HOST
  // At the bound of identities, the identity of a row has fewer labels than the row. Use the identity, not the label set of the row.
  const wanted =
    row !== 0 && ipcache.prefixes.derived[row] === set ? ipcache.prefixes.wanted[row]! : 0
  return wanted === 0 ? allocator.find(set) : identity(wanted)
}

function hostRow(core: CoreState, family: Family, address: Prefix | undefined): number {
  if (address === undefined) return 0
  return core.ipcache.prefixes.find(family, address.octets, 0, widthOf(family))
}

/** Returns the row of the longest prefix with facts around an address without facts of its own; 0 if there is none. */
function containerOf(core: CoreState, family: Family, octets: Uint8Array | undefined): number {
  const { prefixes } = core.ipcache
  if (octets !== undefined) return prefixes.findAround(family, octets, 0)
  const row = prefixes.find(family, NO_OCTETS, 0, 0)
  return row !== 0 && prefixes.firstFact[row] !== 0 ? row : 0
}

function viewOf({ ipcache }: CoreState, family: Family, row: number): View {
  const { prefixes } = ipcache
  const world = worldOf(family)
  if (row === 0) return { set: undefined, identity: world, addressClass: world }
  const addressClass = identity(prefixes.addressClass[row]!)
  return { set: prefixes.derived[row]!, identity: prefixes.identityOf(row), addressClass }
}

function reservedLabels({ addressClass }: View): readonly string[] {
  const label = RESERVED_NAMES.get(addressClass)
  const isWorld = label?.startsWith('reserved:world-') === true
  return [...(isWorld ? ['reserved:world'] : []), ...(label === undefined ? [] : [label])]
}
