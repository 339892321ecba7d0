// CidrSelectors finds the CIDR selectors that select the prefix of a `cidr:` label. This costs one lookup for each prefix length in use.
// Only the selector cache uses this class.

import { containsPrefix, formatPrefix, truncatePrefix, type Prefix } from '../core/ip.ts'

interface Holder {
  readonly prefix: Prefix
  readonly except: readonly Prefix[]
}

export class CidrSelectors<Kept extends Holder> {
  readonly #byPrefix = new Map<string, Kept[]>()
  /** How many selectors have each prefix length, by family. */
  readonly #lengths = { 4: new Map<number, number>(), 6: new Map<number, number>() }

  add(kept: Kept): void {
    const { prefix } = kept
    const place = formatPrefix(prefix)
    this.#byPrefix.set(place, [...(this.#byPrefix.get(place) ?? []), kept])
    const lengths = this.#lengths[prefix.family]
    lengths.set(prefix.length, (lengths.get(prefix.length) ?? 0) + 1)
  }

  remove(kept: Kept): void {
    const { family, length } = kept.prefix
    const place = formatPrefix(kept.prefix)
    const left = (this.#byPrefix.get(place) ?? []).filter((other) => other !== kept)
    if (left.length === 0) this.#byPrefix.delete(place)
    else this.#byPrefix.set(place, left)
    const count = (this.#lengths[family].get(length) ?? 1) - 1
    if (count === 0) this.#lengths[family].delete(length)
    else this.#lengths[family].set(length, count)
  }

  /** Returns the selectors that select an identity with the `cidr:` label of this prefix. */
  *selectorsFor(prefix: Prefix): Iterable<Kept> {
    for (const length of this.#lengths[prefix.family].keys()) {
      if (length > prefix.length) continue
      const candidates = this.#byPrefix.get(formatPrefix(truncatePrefix(prefix, length)))
      for (const kept of candidates ?? []) if (selectsCidr(kept, prefix)) yield kept
    }
  }
}

/** Returns true if a CIDR selector selects an identity with the label `cidr:<label>` (docs/spec/semantics 3). */
export function selectsCidr({ prefix, except }: Holder, label: Prefix): boolean {
  return containsPrefix(prefix, label) && !except.some((each) => containsPrefix(each, label))
}
