// A suggestion as an allow-list, one `PATTERN:PORT/PROTOCOL` a line. It says less than a policy can: addresses, peers by label and
// names that were asked and never reached stand in comments. Pure.

import { namespaceOf, leftOutWords, selectorOf } from './format-policy.ts'
import type { SuggestedRule } from './peers.ts'
import type { Suggestion } from './suggest.ts'

/** Without any name it is comments only. */
export function formatAllowList(suggestion: Suggestion, heading: readonly string[]): string {
  const { asked, rules, leftOut } = suggestion
  const reached = new Set(
    rules.flatMap(({ peer }) => (peer.kind === 'names' ? peer.names.texts : [])),
  )
  const onlyAsked = (asked?.names.texts ?? []).filter((name) => !reached.has(name))
  return [
    ...heading.map((line) => `# ${line}`),
    ...leftOut.map((each) => `# ${leftOutWords(each, true)}`),
    ...onlyAsked.map((name) => `# Left out, because it was asked and never reached: ${name}`),
    ...rules.flatMap(ruleLines),
    '',
  ].join('\n')
}

function ruleLines({ peer, ports, evidence }: SuggestedRule): readonly string[] {
  const places = ports.map(({ port, protocol }) => `${port}/${protocol.toLowerCase()}`)
  if (peer.kind === 'names') {
    const lines = peer.names.texts.flatMap((name) =>
      places.map((place) => (place.endsWith('/sctp') ? `# ${name}:${place}` : `${name}:${place}`)),
    )
    return [`# ${evidence.words}`, ...lines]
  }
  const what =
    peer.kind === 'addresses'
      ? peer.prefixes
      : [
          `${namespaceOf(peer.labels)} ${[...selectorOf(peer.labels)].map((pair) => pair.join('=')).join(',')}`,
        ]
  return what.map(
    (each) =>
      `# Left out, because a list has names only: ${each} ${places.join(' ')} (${evidence.words})`,
  )
}
