// A pattern for names: Cilium's grammar (SEMANTICS 1), parsed once from policy text. Matching many
// patterns against a name is names/selector-index.ts; the naive meaning, one pattern against one name,
// is `matches` here, used off the packet path and as the second opinion in tests.

/** A parsed pattern. Equal `text` means equal meaning. */
export interface Pattern {
  /** Canonical: lower case, no final dot, runs of stars folded (`***.a` is `**.a`, `a**b` is `a*b`, `**` alone `*`). */
  readonly text: string
  readonly kind: 'every' | 'exact' | 'below' | 'globs'
  /** Labels of the pattern as text, leftmost first; of `below` without the leading `**`; empty for `every`. */
  readonly labels: readonly string[]
}

export type PatternResult =
  | { readonly kind: 'ok'; readonly pattern: Pattern }
  | { readonly kind: 'bad'; readonly reason: string }
