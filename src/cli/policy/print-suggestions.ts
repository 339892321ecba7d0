// `printSuggestions` prints the suggestions of `policy suggest` as policy documents, an allow-list, or JSON. Equal suggestions give equal
// texts.

import type { NamesAndPatterns } from '../../suggest/collapse.ts'
import { allOf, type Evidence } from '../../suggest/evidence.ts'
import { formatAllowList, formatPolicy, namespaceOf, selectorOf } from '../../suggest/format.ts'
import type { Group } from '../../suggest/label-groups.ts'
import type { SuggestedPeer } from '../../suggest/peers.ts'
import type { Suggestion } from '../../suggest/suggest.ts'
import { toJson, type CommandOutput } from '../command.ts'

/** A suggestion, with the group of endpoints that it is for. */
export interface Suggested {
  readonly group: Group
  readonly suggestion: Suggestion
}

/** Prints all suggestions to stdout, in the given format. */
export function printSuggestions(
  all: readonly Suggested[],
  format: 'policy' | 'allow-list' | 'json',
  output: CommandOutput,
): void {
  const names = new Set<string>()
  switch (format) {
    case 'json':
      output.stdout(toJson(all.map(toRow)))
      break
    case 'allow-list':
      for (const { group, suggestion } of all) {
        const who = `For policies.allow-list-endpoints: { ${pairsOf(group.selector, ': ')} }`
        output.stdout(formatAllowList(suggestion, [...headingOf(suggestion), who]))
      }
      break
    case 'policy': {
      const documents = all.map(({ group, suggestion }) =>
        formatPolicy(suggestion, {
          name: nameFor(group, names),
          namespace: group.namespace,
          selector: group.selector,
          heading: headingOf(suggestion),
          evidence: true,
        }),
      )
      if (documents.length > 0) output.stdout(documents.join('---\n'))
    }
  }
}

function headingOf({ asked, rules }: Suggestion): readonly string[] {
  const all = allOf([
    ...(asked === undefined ? [] : [asked.evidence]),
    ...rules.map((rule) => rule.evidence),
  ])
  return [`Suggested by namegate from ${all.words}.`, 'Read it before you use it.']
}

/** Returns a name such as `suggested-shop`. If the name is taken in the namespace, adds a number. Adds the name to `taken`. */
function nameFor({ namespace, selector }: Group, taken: Set<string>): string {
  const words = [...selector].map(([key, value]) => (value === '' ? key : value)).join('-')
  const slug = words
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .slice(0, 40)
    .replace(/^-+|-+$/g, '')
  const base = slug === '' ? 'suggested' : `suggested-${slug}`
  let name = base
  for (let n = 2; taken.has(`${namespace}/${name}`); n++) name = `${base}-${n}`
  taken.add(`${namespace}/${name}`)
  return name
}

function toRow({ group, suggestion }: Suggested): object {
  const { asked, rules, leftOut } = suggestion
  return {
    namespace: group.namespace,
    matchLabels: Object.fromEntries(group.selector),
    asked:
      asked === undefined ? null : { ...namesRow(asked.names), ...evidenceRow(asked.evidence) },
    rules: rules.map(({ peer, ports, evidence }) => ({
      ...peerRow(peer),
      ports: ports.map(({ port, protocol }) => `${port}/${protocol}`),
      ...evidenceRow(evidence),
    })),
    leftOut: leftOut.map(({ what, why, evidence }) => ({ what, why, ...evidenceRow(evidence) })),
  }
}

function peerRow(peer: SuggestedPeer): object {
  switch (peer.kind) {
    case 'names':
      return namesRow(peer.names)
    case 'addresses':
      return { prefixes: peer.prefixes }
    case 'endpoints':
      return {
        endpoints: {
          namespace: namespaceOf(peer.labels),
          matchLabels: Object.fromEntries(selectorOf(peer.labels)),
        },
      }
  }
}

function namesRow({ texts, patterns }: NamesAndPatterns): object {
  return patterns.size === 0
    ? { names: texts }
    : { names: texts, patterns: Object.fromEntries(patterns) }
}

function evidenceRow({ count, first, last, endpoints, nodes }: Evidence): object {
  return { flows: count, first, last, endpoints: [...endpoints].sort(), nodes: [...nodes].sort() }
}

function pairsOf(pairs: ReadonlyMap<string, string>, between: string): string {
  return [...pairs].map(([key, value]) => `${key}${between}${value}`).join(', ')
}
