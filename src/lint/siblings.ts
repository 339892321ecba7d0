// `lintSiblings` compares each pattern with the other names and patterns of its list. If a pattern matches another name of the list and has
// its ports, this name is useless. A pattern with at most one fixed DNS label at its end, such as `*.com`, is suspiciously wide if all other
// names have more of them.

import { parseName } from '../core/name.ts'
import { matches, type Pattern } from '../policy/match/pattern.ts'
import type { Finding } from './finding.ts'
import type { NameList, WrittenName } from './written-names.ts'

/** Texts that replace the stars of a pattern to make sample names. Policies do not contain these texts. */
const TRIED = ['q7-z', 'x_9q'] as const

/** Returns the findings about the patterns of one list. */
export function lintSiblings({ names }: NameList): readonly Finding[] {
  return names.flatMap((name) => {
    if (!name.text.includes('*')) return []
    const others = names.filter((other) => other.pattern.text !== name.pattern.text)
    const covered = others.filter((other) => covers(name, other))
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
  const list = covered
    .map((other) => (other.ports ? `${other.text} in line ${other.position.line}` : other.text))
    .join(', ')
  return {
    position,
    code: 'wider-than-siblings',
    message: `${text} already matches other names of the same list: ${list}`,
    remedy: `remove ${list}, or replace ${text} with the names that are meant`,
  }
}

function wideFinding({ text, position }: WrittenName): Finding {
  return {
    position,
    code: 'wider-than-siblings',
    message: `${text} is far wider than the other names of its list`,
    remedy: 'write the domain that is meant',
  }
}

/** Returns true if `outer` matches the names of `inner` and has its ports. */
function covers(outer: WrittenName, inner: WrittenName): boolean {
  const { ports } = outer
  return (
    coversPattern(outer.pattern, inner.pattern) &&
    (ports === undefined ||
      (inner.ports ?? []).every(({ protocol, low, high }) =>
        ports.some((each) => each.protocol === protocol && each.low <= low && each.high >= high),
      ))
  )
}

/** Returns true if `outer` matches the names that `inner` matches. Tries sample names only. */
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

/** Returns true for a pattern that matches a whole top-level domain, or every name. */
function isOpen(pattern: Pattern): boolean {
  const starred = pattern.labels.filter((label) => label.includes('*'))
  return fixedLabels(pattern) < 2 && starred.every((label) => /^\*+$/.test(label))
}

/** Returns how many DNS labels at the end of the pattern contain no star. */
function fixedLabels({ labels }: Pattern): number {
  let count = 0
  while (count < labels.length && labels.at(-1 - count)?.includes('*') === false) count++
  return count
}
