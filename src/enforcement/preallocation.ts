// Preallocation allocates identities in advance for the label sets that names will get (docs/spec/semantics 3, CFP-28427 "FQDN identity
// pre-allocation"). So the first answer for a name needs no allocation and no write to a policy map. The label set of a `matchName` is the
// union of the labels of all selectors that match the name. The label set of a pattern is its own label. If policy selects
// a prefix of length 0-8, the addresses inside inherit its labels. Each label set is allocated once per address family in use and per set
// of inherited labels. Addresses outside of these prefixes inherit the empty set. While an endpoint has `default-egress: allow-named`,
// each of these sets also exists with `reserved:named`. Pre-allocation is best effort: it stops at half of `limits.static-identities`.
//
// `note` remembers a changed selector. If it is a pattern, `refresh` also looks at the `matchName`s that the pattern matches. If the
// families in use, the prefixes of length 0-8 or `allow-named` change, `refresh` looks at all selectors. `refresh` works in slices.

import { identity, type Identity } from '../core/ids.ts'
import type { Family } from '../core/ip.ts'
import { EMPTY_SET } from '../core/labels.ts'
import { parseName } from '../core/name.ts'
import { NAMED_LABEL, worldOf } from '../identity/reserved.ts'
import type { FqdnSelector, Selector } from '../identity/selector-cache.ts'
import { isKnownClass } from '../ipcache/derive.ts'
import { addTo, removeFrom } from '../policy/match/labels.ts'
import { matches, type Pattern } from '../policy/match/pattern.ts'
import type { CoreState } from './core-state.ts'

/** Prefixes up to this length, in bits, contain so much of the world that the labels inherited from them are worth a pre-allocation. */
const PASSED_DOWN_LENGTH_MAX = 8
/** If more names than this have to be compared with changed patterns, a check of every selector is cheaper. */
const COMPARED_MAX = 8192
/** Selectors that are handled between two reads of the clock. */
const PER_LOOK = 16

/** The label sets that are combined with the labels of selectors. The sets live until the next commit. */
interface Around {
  /** The set of `reserved:named`; EMPTY_SET while no endpoint has `allow-named`. */
  readonly named: number
  /** The sets that addresses inherit from prefixes of length 0-8, by family. */
  readonly sets: ReadonlyMap<Family, readonly number[]>
  /** Two objects with the same content have the same key. */
  readonly key: string
}

interface Held {
  readonly set: number
  readonly identity: Identity
}

const NOTHING_HELD: readonly Held[] = []
const NOTHING_AROUND: Around = { named: EMPTY_SET, sets: new Map(), key: '' }

export class Preallocation {
  readonly #core: CoreState
  readonly #max: number
  readonly #exact = new ExactNames()
  readonly #bySelector = new Map<FqdnSelector, readonly Held[]>()
  /** The identities of `reserved:named` without labels of selectors. */
  #named: readonly Held[] = []
  /** Selectors that `refresh` has to look at. */
  #noted = new Set<FqdnSelector>()
  /** Patterns that changed. `refresh` notes the exact names that they match. */
  #patterns: FqdnSelector[] = []
  #around: Around = NOTHING_AROUND
  #count = 0
  /** True if a set got no identity because there was no room. */
  #isFull = false

  constructor(options: { readonly core: CoreState; readonly staticIdentitiesMax: number }) {
    this.#core = options.core
    this.#max = Math.floor(options.staticIdentitiesMax / 2)
  }

  get count(): number {
    return this.#count
  }

  get pending(): boolean {
    return this.#noted.size > 0 || this.#patterns.length > 0
  }

  /** Notes a selector that is new, stopped giving its label to names, or is removed. */
  note(selector: Selector): void {
    if (selector.kind !== 'fqdn') return
    this.#noted.add(selector)
    if (selector.pattern.kind !== 'exact') this.#patterns.push(selector)
    else if (this.#gives(selector)) this.#exact.add(selector)
    else this.#exact.remove(selector)
  }

  /** Updates the pre-allocated sets until `until` (`Clock.now()`). Returns true when `refresh` has looked at all noted selectors. */
  refresh(families: ReadonlySet<Family>, until: number): boolean {
    this.#noteConcerned(this.#lookAround(families))
    let n = 0
    for (const selector of this.#noted) {
      if (++n % PER_LOOK === 0 && this.#core.clock.now() >= until) return false
      this.#noted.delete(selector)
      const wanted = this.#wantedSets(this.#ownSets(selector))
      const held = this.#hold(this.#bySelector.get(selector) ?? NOTHING_HELD, wanted)
      if (held.length === 0) this.#bySelector.delete(selector)
      else this.#bySelector.set(selector, held)
    }
    return true
  }

  /** Notes the selectors that a change concerns. */
  #noteConcerned(around: Around): void {
    const isOther = around.key !== this.#around.key
    this.#around = around
    const hasRoom = this.#isFull && this.#count < this.#max
    if (isOther || hasRoom || !this.#noteUnderPatterns()) this.#noteAll()
    this.#patterns = []
    if (isOther) this.#named = this.#hold(this.#named, this.#wantedSets([around.named]))
  }

  /** True if the names that the selector matches get its label. */
  #gives(selector: FqdnSelector): boolean {
    return this.#core.selectorLabels.has(selector)
  }

  #noteAll(): void {
    this.#isFull = false
    for (const selector of this.#bySelector.keys()) this.#noted.add(selector)
    for (const selector of this.#core.selectors) {
      if (selector.kind === 'fqdn') this.#noted.add(selector)
    }
  }

  /** Notes the exact names that a changed pattern matches. Returns false if that would take too long. */
  #noteUnderPatterns(): boolean {
    let compared = 0
    for (const { pattern } of this.#patterns) {
      for (const candidates of this.#exact.under(pattern)) {
        compared += candidates.size
        if (compared > COMPARED_MAX) return false
        for (const selector of candidates) {
          const parsed = parseName(selector.pattern.text)
          if (parsed.kind === 'ok' && matches(pattern, parsed.name)) this.#noted.add(selector)
        }
      }
    }
    return true
  }

  /** Acquires and releases sets, so that exactly the wanted sets are held. */
  #hold(before: readonly Held[], wanted: readonly number[]): readonly Held[] {
    const { allocator } = this.#core
    const [only] = wanted
    if (before.length === 0 && only !== undefined && wanted.length === 1) return this.#take(only)
    const old = new Map(before.map((each) => [each.set, each]))
    const held = new Map<number, Held>()
    for (const set of wanted) {
      if (held.has(set)) continue
      const known = old.get(set)
      old.delete(set)
      for (const taken of known === undefined ? this.#take(set) : [known]) held.set(set, taken)
    }
    for (const gone of old.values()) allocator.unpreallocate(gone.identity)
    this.#count -= old.size
    return [...held.values()]
  }

  /** Pre-allocates one set, if there is room. */
  #take(set: number): readonly Held[] {
    if (this.#count >= this.#max) {
      this.#isFull = true
      return NOTHING_HELD
    }
    this.#count++
    return [{ set, identity: this.#core.allocator.preallocate(set) }]
  }

  #wantedSets(own: readonly number[]): readonly number[] {
    const { deriver } = this.#core.ipcache
    const wanted: number[] = []
    for (const each of own) {
      if (each === EMPTY_SET) continue
      for (const [family, sets] of this.#around.sets) {
        for (const set of sets) wanted.push(deriver.derive(each, set, worldOf(family), family))
      }
    }
    return wanted
  }

  /** The label sets of a selector, before inherited labels are added. Empty if names do not get the label of the selector. */
  #ownSets(selector: FqdnSelector): readonly number[] {
    const own = this.#ownSet(selector)
    if (own === undefined) return []
    const { named } = this.#around
    return named === EMPTY_SET ? [own] : [own, this.#core.labelSets.union(own, named)]
  }

  #ownSet(selector: FqdnSelector): number | undefined {
    const { selectorLabels } = this.#core
    const alone = selectorLabels.setOf(selector)
    if (alone === undefined || selector.pattern.kind !== 'exact') return alone
    const parsed = parseName(selector.pattern.text)
    return parsed.kind === 'ok' ? selectorLabels.labelsOf(parsed.name, 0) : alone
  }

  #lookAround(families: ReadonlySet<Family>): Around {
    const { scopes, labelSets } = this.#core
    const named = scopes.hasNamed ? labelSets.intern([NAMED_LABEL]) : EMPTY_SET
    const sets = new Map<Family, readonly number[]>()
    for (const family of families) sets.set(family, this.#passedDown(family))
    const texts = [...sets].map(([family, passed]) => `${family} ${passed.join(',')}`)
    return { named, sets, key: [named, ...texts].join('; ') }
  }

  /** The sets that addresses inherit from prefixes of length 0-8. EMPTY_SET stands for addresses outside of these prefixes. */
  #passedDown(family: Family): readonly number[] {
    const { prefixes } = this.#core.ipcache
    const sets = new Set<number>([EMPTY_SET])
    for (const row of prefixes.containers) {
      const wide = prefixes.lengths[row]! <= PASSED_DOWN_LENGTH_MAX
      if (!wide || prefixes.family(row) !== family) continue
      if (isKnownClass(identity(prefixes.addressClass[row]!))) continue
      if (prefixes.lengths[row] === 0) sets.delete(EMPTY_SET)
      sets.add(prefixes.derived[row]!)
    }
    return [...sets]
  }
}

type Selectors = ReadonlySet<FqdnSelector>

/** Finds selectors of single names (`matchName`) by the last two DNS labels of the name, so that a pattern is compared with few names. */
class ExactNames {
  readonly #byEnd = new Map<string, Set<FqdnSelector>>()

  add(selector: FqdnSelector): void {
    addTo(this.#byEnd, endOf(selector.pattern.labels), selector)
  }

  remove(selector: FqdnSelector): void {
    removeFrom(this.#byEnd, endOf(selector.pattern.labels), selector)
  }

  /** Returns sets of selectors. Together they contain every selector whose name the pattern can match. They can contain others. */
  under({ labels }: Pattern): Iterable<Selectors> {
    const last = labels.slice(-2)
    const isLiteral = last.length === 2 && !last.some((label) => label.includes('*'))
    if (!isLiteral) return this.#byEnd.values()
    const under = this.#byEnd.get(endOf(labels))
    return under === undefined ? [] : [under]
  }
}

function endOf(labels: readonly string[]): string {
  return labels.slice(-2).join('.')
}
