// Wildcards among the names that stand beside them: one that matches a sibling makes that useless, and one whose fixed
// part is a single label where all siblings have more is wider than they let one expect.

import { parseName } from '../core/name.ts'
import { matches, type Pattern } from '../policy/match/pattern.ts'
import type { Finding } from './finding.ts'
import type { NameList, WrittenName } from './written-names.ts'

/** What stars of a pattern are tried with: no policy writes these. */
const TRIED = ['q7-z', 'x_9q'] as const

export function lintSiblings({ names }: NameList): readonly Finding[] {
  return names.flatMap((name) => {
    if (!name.text.includes('*')) return []
    const others = names.filter((other) => other.pattern.text !== name.pattern.text)
    const covered = others.filter((other) => coversPattern(name.pattern, other.pattern))
    if (covered.length > 0) return [coveringFinding(name, covered)]
    const isWide = isOpen(name.pattern) && others.length > 0
    return isWide && others.every((other) => fixedLabels(other.pattern) > 1)
      ? [wideFinding(name)]
      : []
  })
}

function coveringFinding(
  { text, position }: WrittenName,
  covered: readonly WrittenName[],
): Finding {
  const list = covered.map((other) => other.text).join(', ')
  return {
    position,
    code: 'wider-than-siblings',
    message: `${text} matches already what stands beside it: ${list}`,
    remedy: `leave out ${list}, or write the names that are meant instead of ${text}`,
  }
}

function wideFinding({ text, position }: WrittenName): Finding {
  return {
    position,
    code: 'wider-than-siblings',
    message: `${text} is far wider than the names beside it`,
    remedy: 'write the domain that is meant',
  }
}

/** Whether every name that `inner` matches is matched by `outer`, tried on some. */
export function coversPattern(outer: Pattern, inner: Pattern): boolean {
  if (outer.kind === 'every') return true
  if (inner.kind === 'every') return false
  return samples(inner).every((text) => {
    const name = parseName(text)
    return name.kind === 'ok' && matches(outer, name.name)
  })
}

function samples({ kind, labels }: Pattern): readonly string[] {
  const [first] = labels
  const isDeep = kind === 'below' || first === '**'
  const tail = first === '**' ? labels.slice(1) : labels
  return TRIED.flatMap((word) => {
    const text = tail.map((label) => label.replaceAll('*', word)).join('.')
    return isDeep ? [`${word}.${text}`, `${word}.${word}.${text}`] : [text]
  })
}

/** A whole top-level domain, or everything. */
function isOpen(pattern: Pattern): boolean {
  const starred = pattern.labels.filter((label) => label.includes('*'))
  return fixedLabels(pattern) < 2 && starred.every((label) => /^\*+$/.test(label))
}

/** Labels without a star at the end of the pattern. */
function fixedLabels({ labels }: Pattern): number {
  let count = 0
  while (count < labels.length && labels.at(-1 - count)?.includes('*') === false) count++
  return count
}
