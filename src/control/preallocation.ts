// Numbers in advance for the label sets that names will really get (SEMANTICS 3, CFP-28427 "FQDN identity
// pre-allocation"), so that the first answer for a name needs no allocation and no policy-map write: for a
// `matchName` the union of all selectors that match it, for a pattern its own set, each per family in
// use and with what selected prefixes of length 0-8 pass down; all of it once more with `reserved:named`
// while an endpoint has `default-egress: allow-named`. Best effort: stops at half of
// `limits.static-identities`.

import { identity, type Identity } from '../core/ids.ts'
import type { Family } from '../core/ip.ts'
import { EMPTY_SET } from '../core/labels.ts'
import { parseName } from '../core/name.ts'
import type { FqdnSelector } from '../identity/selector-cache.ts'
import { NAMED_LABEL, worldOf } from '../identity/reserved.ts'
import { isKnownClass } from '../ipcache/derive.ts'
import type { CoreState } from './core-state.ts'

/** Prefixes up to this length are thought to pass labels down to most of the world. */
const PASSED_DOWN_LENGTH_MAX = 8

export class Preallocation {
  readonly #core: CoreState
  readonly #max: number
  #held = new Map<number, Identity>()

  constructor(options: { readonly core: CoreState; readonly staticIdentitiesMax: number }) {
    this.#core = options.core
    this.#max = Math.floor(options.staticIdentitiesMax / 2)
  }

  get count(): number {
    return this.#held.size
  }

  /** Makes the pre-allocated sets fit the selectors, containers and families in use now. */
  refresh(families: ReadonlySet<Family>): void {
    const { allocator } = this.#core
    const before = this.#held
    this.#held = new Map()
    for (const set of this.#wantedSets(families)) {
      if (this.#held.has(set)) continue
      if (this.#held.size >= this.#max) break
      const known = before.get(set)
      before.delete(set)
      this.#held.set(set, known ?? allocator.preallocate(set))
    }
    for (const id of before.values()) allocator.unpreallocate(id)
  }

  *#wantedSets(families: ReadonlySet<Family>): Iterable<number> {
    const around = new Map<Family, readonly number[]>()
    for (const family of families) around.set(family, this.#passedDown(family))
    for (const own of this.#ownSets()) {
      for (const [family, sets] of around) {
        for (const set of sets) {
          yield this.#core.ipcache.deriver.derive(own, set, worldOf(family), family)
        }
      }
    }
  }

  *#ownSets(): Iterable<number> {
    const { selectors, scopes, labelSets } = this.#core
    const named = scopes.hasNamed ? labelSets.intern([NAMED_LABEL]) : EMPTY_SET
    if (named !== EMPTY_SET) yield named
    for (const selector of selectors) {
      if (selector.kind !== 'fqdn') continue
      const own = this.#ownSet(selector)
      yield own
      if (named !== EMPTY_SET) yield labelSets.union(own, named)
    }
  }

  /** Label sets of selected prefixes so wide that most addresses are inside, and of the world without any. */
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

  #ownSet(selector: FqdnSelector): number {
    const { labelSets, selectorLabels } = this.#core
    if (selector.pattern.kind === 'exact') {
      const parsed = parseName(selector.pattern.text)
      if (parsed.kind === 'ok') return selectorLabels.labelsOf(parsed.name, 0)
    }
    return labelSets.intern([`fqdn:${selector.text}`])
  }
}
