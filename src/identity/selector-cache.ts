// SelectorCache holds the selectors of policy, and for each selector the identities that it selects. Selectors select by labels only:
//   FQDN selector      identities with the selector's `fqdn:` label
//   CIDR selector      identities whose `cidr:` label is inside the selector's prefix and inside none of its exceptions (invariant 6)
//   endpoint selector  identities of known endpoints and resources whose labels the selector matches
//   named selector     identities with the label `reserved:named`
//
// Equal selectors of several policies are one selector with counted references.
//
// Cost: a new identity needs one lookup for each of its fqdn labels, and one for each prefix length in use. A new CIDR selector is
// compared with all distinct cidr labels.

import { addTo, FewSet, removeFrom } from '../core/tables/few.ts'
import { selectorId, type Identity, type SelectorId } from '../core/ids.ts'
import { invariant } from '../core/invariant.ts'
import { formatPrefix, type Prefix } from '../core/ip.ts'
import type { Label, LabelSet, LabelSets } from '../core/labels.ts'
import { formatSelector } from '../policy/match/labels.ts'
import type { Pattern } from '../policy/match/pattern.ts'
import type { LabelSelector } from '../policy/rule.ts'
import { CidrSelectors, selectsCidr } from './cidr-selectors.ts'
import { LabelSelectors } from './label-selectors.ts'
import { NAMED_LABEL } from './reserved.ts'

export interface FqdnSelector {
  readonly kind: 'fqdn'
  readonly id: SelectorId
  /** The text of the pattern in its canonical form. */
  readonly text: string
  /** The label of the identities that the selector selects: `fqdn:` + text. */
  readonly label: string
  readonly pattern: Pattern
  readonly identities: FewSet<Identity>
}

export interface CidrSelector {
  readonly kind: 'cidr'
  readonly id: SelectorId
  /** For example `10.0.0.0/8`, or with an exception `10.0.0.0/8 except 10.96.0.0/12`. */
  readonly text: string
  readonly prefix: Prefix
  readonly except: readonly Prefix[]
  readonly identities: FewSet<Identity>
}

/** Selects every address that an endpoint with `default-egress: allow-named` learned, in the endpoint's own scope. */
export interface NamedSelector {
  readonly kind: 'named'
  readonly id: SelectorId
  readonly text: string
  readonly identities: FewSet<Identity>
}

/** Selects known endpoints and external resources by their labels. */
export interface EndpointSelector {
  readonly kind: 'endpoints'
  readonly id: SelectorId
  /** For example `app=a,!tier`. `*` selects all known endpoints and external resources. */
  readonly text: string
  readonly selector: LabelSelector
  readonly identities: FewSet<Identity>
}

export type Selector = FqdnSelector | CidrSelector | NamedSelector | EndpointSelector

export type SelectorSpec =
  | { readonly kind: 'fqdn'; readonly pattern: Pattern }
  | { readonly kind: 'cidr'; readonly prefix: Prefix; readonly except: readonly Prefix[] }
  | { readonly kind: 'named' }
  | { readonly kind: 'endpoints'; readonly selector: LabelSelector }

interface Counted {
  readonly selector: Selector
  references: number
}

export class SelectorCache {
  readonly #sets: LabelSets
  readonly #byKey = new Map<string, Counted>()
  readonly #byId = new Map<SelectorId, Selector>()
  readonly #selectorsOf = new Map<Identity, readonly Selector[]>()
  readonly #identitiesByLabel = new Map<string, FewSet<Identity>>()
  readonly #byLabels = new LabelSelectors<EndpointSelector>()
  readonly #byCidr = new CidrSelectors<CidrSelector>()
  #nextId = 0

  constructor(options: { readonly labelSets: LabelSets }) {
    this.#sets = options.labelSets
  }

  get size(): number {
    return this.#byId.size
  }

  *[Symbol.iterator](): Iterable<Selector> & Iterator<Selector> {
    yield* this.#byId.values()
  }

  get(id: SelectorId): Selector | undefined {
    return this.#byId.get(id)
  }

  /** Returns the selector of a spec, without a new reference. */
  find(spec: SelectorSpec): Selector | undefined {
    return this.#byKey.get(keyOf(spec.kind, textOf(spec)))?.selector
  }

  /** Returns the FQDN selector of a `fqdn:` label, or the named selector for `reserved:named`. */
  byLabel(text: string): Selector | undefined {
    return this.#byKey.get(text === NAMED_LABEL ? NAMED_KEY : text)?.selector
  }

  /** Returns a counted reference to the selector of a spec. `added`: there was no such selector before. */
  acquire(spec: SelectorSpec): { readonly selector: Selector; readonly added: boolean } {
    const text = textOf(spec)
    const key = keyOf(spec.kind, text)
    const known = this.#byKey.get(key)
    if (known !== undefined) {
      known.references++
      return { selector: known.selector, added: false }
    }
    const selector = this.#make(spec, text, key)
    this.#byKey.set(key, { selector, references: 1 })
    this.#byId.set(selector.id, selector)
    this.#selectExisting(selector)
    return { selector, added: true }
  }

  /** Releases a reference. Returns true if it was the last one, so that the selector was removed. */
  release(selector: Selector): boolean {
    const key = keyOf(selector.kind, selector.text)
    const counted = this.#byKey.get(key)
    invariant(counted !== undefined, `selector ${key} is known`)
    counted.references--
    if (counted.references > 0) return false
    this.#byKey.delete(key)
    this.#byId.delete(selector.id)
    this.#unregister(selector)
    for (const id of selector.identities) {
      const left = (this.#selectorsOf.get(id) ?? []).filter((other) => other !== selector)
      this.#selectorsOf.set(id, left)
    }
    return true
  }

  /** Registers an identity that came into use. Returns the selectors that select it. */
  addIdentity(id: Identity, setId: number): readonly Selector[] {
    const set = this.#sets.get(setId)
    this.#byLabels.addIdentity(id, set)
    for (const label of set.labels) {
      if (mayBeSelected(label)) addTo(this.#identitiesByLabel, label.text, id)
    }
    const selectors = this.#selecting(set)
    for (const selector of selectors) selector.identities.add(id)
    this.#selectorsOf.set(id, selectors)
    return selectors
  }

  /** Returns the selectors that select a label set. No identity needs to have this set. */
  selectorsFor(setId: number): readonly Selector[] {
    return this.#selecting(this.#sets.get(setId))
  }

  /** Forgets an identity that went out of use. */
  removeIdentity(id: Identity, setId: number): void {
    for (const selector of this.#selectorsOf.get(id) ?? []) selector.identities.delete(id)
    this.#selectorsOf.delete(id)
    this.#byLabels.removeIdentity(id)
    for (const label of this.#sets.get(setId).labels) {
      removeFrom(this.#identitiesByLabel, label.text, id)
    }
  }

  selectorsOf(id: Identity): readonly Selector[] {
    return this.#selectorsOf.get(id) ?? []
  }

  #selecting(set: LabelSet): readonly Selector[] {
    const selectors: Selector[] = []
    for (const label of set.labels) {
      const key = keyOfLabel(label)
      const selector = key === undefined ? undefined : this.#byKey.get(key)?.selector
      if (selector !== undefined) selectors.push(selector)
    }
    const prefix = set.cidr?.prefix
    if (prefix !== undefined) selectors.push(...this.#byCidr.selectorsFor(prefix))
    selectors.push(...this.#byLabels.selectorsFor(set))
    // The copy has no spare memory, unlike an array that grew by `push`.
    return selectors.slice()
  }

  #make(spec: SelectorSpec, text: string, key: string): Selector {
    const id = selectorId(this.#nextId++)
    const identities = new FewSet<Identity>()
    if (spec.kind === 'fqdn') {
      const { kind, pattern } = spec
      // The key of an FQDN selector is also its label.
      return { kind, id, text, label: key, pattern, identities }
    }
    if (spec.kind === 'named') return { kind: spec.kind, id, text, identities }
    if (spec.kind === 'endpoints') {
      const { kind, selector: labels } = spec
      const selector: EndpointSelector = { kind, id, text, selector: labels, identities }
      this.#byLabels.add(selector)
      return selector
    }
    const { kind, prefix, except } = spec
    const selector: CidrSelector = { kind, id, text, prefix, except, identities }
    this.#byCidr.add(selector)
    return selector
  }

  #unregister(selector: Selector): void {
    if (selector.kind === 'endpoints') this.#byLabels.remove(selector)
    else if (selector.kind === 'cidr') this.#byCidr.remove(selector)
  }

  #selectExisting(selector: Selector): void {
    if (selector.kind === 'endpoints') {
      this.#select(selector, this.#byLabels.identitiesOf(selector))
      return
    }
    if (selector.kind !== 'cidr') {
      this.#select(selector, this.#identitiesByLabel.get(labelOf(selector)))
      return
    }
    for (const [text, identities] of this.#identitiesByLabel) {
      const prefix = this.#sets.find(text)?.prefix
      if (prefix !== undefined && selectsCidr(selector, prefix)) this.#select(selector, identities)
    }
  }

  #select(selector: Selector, identities: Iterable<Identity> | undefined): void {
    for (const id of identities ?? []) {
      selector.identities.add(id)
      this.#selectorsOf.set(id, [...(this.#selectorsOf.get(id) ?? []), selector])
    }
  }
}

function mayBeSelected(label: Label): boolean {
  return label.kind !== 'plain' || label.text === NAMED_LABEL
}

function labelOf(selector: FqdnSelector | NamedSelector): string {
  return selector.kind === 'named' ? NAMED_LABEL : selector.label
}

/** Returns the key of a selector. For an FQDN selector it equals the label. */
function keyOf(kind: Selector['kind'], text: string): string {
  return `${kind}:${text}`
}

const NAMED_KEY = keyOf('named', NAMED_LABEL)

/** Returns the key of the selector that selects by this one label. Undefined: no selector selects by one such label. */
function keyOfLabel({ kind, text }: Label): string | undefined {
  if (kind === 'fqdn') return text
  return text === NAMED_LABEL ? NAMED_KEY : undefined
}

function textOf(spec: SelectorSpec): string {
  if (spec.kind === 'named') return NAMED_LABEL
  if (spec.kind === 'fqdn') return spec.pattern.text
  if (spec.kind === 'endpoints') return formatSelector(spec.selector)
  const except = spec.except.map(formatPrefix).sort()
  const prefix = formatPrefix(spec.prefix)
  return except.length === 0 ? prefix : `${prefix} except ${except.join(', ')}`
}
