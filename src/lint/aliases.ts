// `lintAliases` finds names in `toFQDNs` that are the CNAME target of another name in `toFQDNs`. Policy uses the name that was asked
// (`dns.cname-match: question`). So a rule for the target allows nothing to an endpoint that asks for the alias. Such names are found only
// with the help of recorded CNAME chains.

import { formatName, parseName } from '../core/name.ts'
import { matches } from '../policy/match/pattern.ts'
import type { Finding } from './finding.ts'
import type { NameList, WrittenName } from './written-names.ts'

/** Name that was asked -> the other names of its CNAME chain. Names are lower case without final dot. */
export type Aliases = ReadonlyMap<string, readonly string[]>

/** Returns one finding for each exact name that is a CNAME target of other written names. */
export function lintAliases(lists: readonly NameList[], aliases: Aliases): readonly Finding[] {
  const written = lists.filter(({ kind }) => kind === 'toFQDNs').flatMap(({ names }) => names)
  return written.flatMap((name) => {
    if (name.pattern.kind !== 'exact') return []
    const asked = [...aliases].filter(([, targets]) => targets.some((each) => isName(name, each)))
    const by = asked.filter(([alias]) =>
      written.some((other) => other !== name && isName(other, alias)),
    )
    return by.length === 0
      ? []
      : [
          findingOf(
            name,
            by.map(([alias]) => alias),
          ),
        ]
  })
}

function findingOf({ text, position }: WrittenName, aliases: readonly string[]): Finding {
  const list = aliases.join(', ')
  return {
    position,
    code: 'cname-target',
    message: `${text} is the CNAME target of ${list}, which another selector allows: policy uses the name that is asked, not the target`,
    remedy: `remove ${text}, or keep it if an endpoint asks for this name itself`,
  }
}

function isName({ pattern }: WrittenName, text: string): boolean {
  const name = parseName(text)
  return name.kind === 'ok' && formatName(name.name) !== '.' && matches(pattern, name.name)
}
