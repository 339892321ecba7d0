// Names that selectors of one policy set have, of which one is where another's alias leads. Policy goes by the name that
// was asked (`dns.cname-match: question`), so a rule for the target permits nothing to who asks for the alias; and where
// both are selected, each needs its own rule. Known only from chains that were recorded.

import { formatName, parseName } from '../core/name.ts'
import { matches } from '../policy/match/pattern.ts'
import type { Finding } from './finding.ts'
import type { NameList, WrittenName } from './written-names.ts'

/** Name asked -> names that its chain went through, lower case without final dot. */
export type Aliases = ReadonlyMap<string, readonly string[]>

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
    message: `${text} is where ${list} leads, which another selector has: policy goes by the name that is asked`,
    remedy: `leave ${text} out unless somebody asks for it itself`,
  }
}

function isName({ pattern }: WrittenName, text: string): boolean {
  const name = parseName(text)
  return name.kind === 'ok' && formatName(name.name) !== '.' && matches(pattern, name.name)
}
