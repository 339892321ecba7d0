// Finds the known word that a person probably meant by an unknown word. For messages only.

/**
 * Returns the candidate that needs the fewest edits, and of several one that begins with the word. Undefined when even this candidate
 * needs more edits than a third of the word's length (at least one edit).
 */
export function nearest(word: string, candidates: Iterable<string>): string | undefined {
  const wanted = fold(word)
  let best: string | undefined
  let least = Math.max(1, Math.floor(word.length / 3)) + 1
  if (word.length > 64) return undefined
  for (const candidate of candidates) {
    const folded = fold(candidate)
    const distance = editDistance(wanted, folded)
    const isTie = distance === least && best !== undefined && !fold(best).startsWith(wanted)
    if (distance < least || (isTie && folded.startsWith(wanted))) {
      least = distance
      best = candidate
    }
  }
  return best
}

/** How many names a message lists. */
const LISTED_MAX = 10

/** Returns text such as `found box, a, b and 3 more`: the name that was probably meant first, and at most ten names. */
export function foundNames(word: string, names: readonly string[]): string {
  if (names.length === 0) return 'there is none'
  const meant = nearest(word, names)
  const sorted = meant === undefined ? names : [meant, ...names.filter((name) => name !== meant)]
  const left = names.length - LISTED_MAX
  return `found ${sorted.slice(0, LISTED_MAX).join(', ')}${left > 0 ? ` and ${left} more` : ''}`
}

/** Removes the most common differences between words: case, `-` and `_`. */
function fold(word: string): string {
  return word.toLowerCase().replace(/[-_]/g, '')
}

/** The number of insertions, deletions, replacements and swaps of neighbours (optimal string alignment). */
function editDistance(a: string, b: string): number {
  let before: readonly number[] = []
  let row: readonly number[] = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const replace = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      let least = Math.min(replace, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1)
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        least = Math.min(least, (before[j - 2] ?? 0) + 1)
      }
      next.push(least)
    }
    before = row
    row = next
  }
  return row[b.length] ?? 0
}
