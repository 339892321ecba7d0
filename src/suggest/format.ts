// This file writes a suggestion as text. `formatPolicy` writes a CiliumNetworkPolicy as a person would write it, with the evidence of each
// rule in a comment. `formatAllowList` writes an allow-list. The policy loader can read both kinds of text, and other YAML parsers can read
// the policy. The functions have no side effects.

import { DNS_PORT } from '../policy/compile/dns-rules.ts'
import {
  DEFAULT_NAMESPACE,
  DEFAULT_SOURCE,
  NAMESPACE_KEY,
  splitLabel,
} from '../policy/match/labels.ts'
import type { NamesAndPatterns } from './collapse.ts'
import type { SuggestedPeer, SuggestedRule } from './peers.ts'
import { isEmpty, type LeftOut, type Suggestion } from './suggest.ts'

export interface PolicyText {
  readonly name: string
  readonly namespace: string
  /** The `matchLabels` of the endpoint selector. */
  readonly selector: ReadonlyMap<string, string>
  /** Lines of the comment above the policy, without `# `. */
  readonly heading: readonly string[]
  /** True if comments give the evidence of each rule. */
  readonly evidence: boolean
}

/** Label sources that a selector can leave out, because a key without a source matches labels of any source. */
const PLAIN_SOURCES: readonly string[] = [DEFAULT_SOURCE, 'k8s']

/** Returns the suggestion as the YAML text of one CiliumNetworkPolicy. */
export function formatPolicy(suggestion: Suggestion, text: PolicyText): string {
  const { asked, rules, leftOut } = suggestion
  const rests = (words: string): readonly string[] => (text.evidence ? [`    # ${words}`] : [])
  const comments = [...text.heading, ...leftOut.map((each) => leftOutWords(each, text.evidence))]
  return [
    ...comments.map((line) => `# ${line}`),
    'apiVersion: cilium.io/v2',
    'kind: CiliumNetworkPolicy',
    'metadata:',
    `  name: ${scalar(text.name)}`,
    `  namespace: ${scalar(text.namespace)}`,
    'spec:',
    ...selectorLines('  endpointSelector:', text.selector),
    '  egress:',
    ...(isEmpty(suggestion) ? ['    - {}'] : []),
    ...(asked === undefined
      ? []
      : [
          ...rests(`asked: ${asked.evidence.words}`),
          ...patternWords(asked.names),
          '    - toPorts:',
          '        - ports:',
          "            - { port: '53', protocol: ANY }",
          '          rules:',
          '            dns:',
          ...asked.names.texts.map((name) => `              - ${match(name)}`),
        ]),
    ...rules.flatMap(({ peer, ports, evidence }) => [
      ...rests(evidence.words),
      ...(peer.kind === 'names' ? patternWords(peer.names) : []),
      ...peerLines(peer, text.namespace),
      '      toPorts:',
      '        - ports:',
      ...ports.map(
        ({ port, protocol }) => `            - { port: '${port}', protocol: ${protocol} }`,
      ),
    ]),
    '',
  ].join('\n')
}

/** Returns the comment for a need that the suggestion leaves out. */
export function leftOutWords({ what, why, evidence }: LeftOut, withEvidence: boolean): string {
  return `Left out, because ${why}: ${what}${withEvidence ? ` (${evidence.words})` : ''}`
}

/**
 * Returns `matchLabels` that select the endpoints with these labels. A key is written with its source if several sources have the key, or
 * if the source is neither `k8s` nor DEFAULT_SOURCE. The namespace is left out.
 */
export function selectorOf(labels: readonly string[]): ReadonlyMap<string, string> {
  const parts = labels.map(splitLabel).filter(({ key }) => key !== NAMESPACE_KEY)
  return new Map(
    parts.map(({ source, key, value }) => {
      const isAlone = parts.filter((other) => other.key === key).length === 1
      return [isAlone && PLAIN_SOURCES.includes(source) ? key : `${source}:${key}`, value]
    }),
  )
}

/** Returns the namespace in the labels, or else the default namespace. */
export function namespaceOf(labels: readonly string[]): string {
  const label = labels.map(splitLabel).find(({ key }) => key === NAMESPACE_KEY)
  return label?.value ?? DEFAULT_NAMESPACE
}

function peerLines(peer: SuggestedPeer, namespace: string): readonly string[] {
  switch (peer.kind) {
    case 'names':
      return ['    - toFQDNs:', ...peer.names.texts.map((name) => `        - ${match(name)}`)]
    case 'addresses':
      return [
        '    # No name was answered with these addresses.',
        '    - toCIDR:',
        ...peer.prefixes.map((prefix) => `        - ${scalar(prefix)}`),
      ]
    case 'endpoints': {
      const own = namespaceOf(peer.labels)
      const selector = new Map(selectorOf(peer.labels))
      if (own !== namespace) selector.set(`k8s:${NAMESPACE_KEY}`, own)
      const pairs = [...selector].map(
        ([key, value]) => `            ${scalar(key)}: ${scalar(value)}`,
      )
      return ['    - toEndpoints:', '        - matchLabels:', ...pairs]
    }
  }
}

function selectorLines(head: string, selector: ReadonlyMap<string, string>): readonly string[] {
  const pairs = [...selector].map(([key, value]) => `      ${scalar(key)}: ${scalar(value)}`)
  return [head, '    matchLabels:', ...pairs]
}

function patternWords({ patterns }: NamesAndPatterns): readonly string[] {
  return [...patterns].map(([pattern, names]) => `    # ${pattern} stands for ${names} names.`)
}

function match(text: string): string {
  return text.includes('*') ? `matchPattern: '${text}'` : `matchName: ${scalar(text)}`
}

/** Returns the text as a YAML scalar, in quotes if YAML could read the text as another value. */
function scalar(text: string): string {
  const isPlain =
    /^[a-z][a-z0-9./_-]*$/i.test(text) && !/^(?:true|false|null|yes|no|on|off|y|n)$/i.test(text)
  return isPlain ? text : `'${text.replaceAll("'", "''")}'`
}

const ASKED =
  'Asked, and the flows have no connection to it: only its port 53 is opened, because a list has no line for asking alone'
/** A line that allows nothing. A list without a line is a fault. */
const NOTHING = 'none.invalid'

/**
 * Returns the suggestion as an allow-list, with one `TARGET:PORT/PROTOCOL` per line. The list allows what the policy allows, except for
 * peers by label and SCTP ports, which are written as comments. A name without a connection gets port 53: it can be asked, as the policy
 * lets it be asked, and queries to this port go through namegate.
 */
export function formatAllowList(suggestion: Suggestion, heading: readonly string[]): string {
  const { asked, rules, leftOut } = suggestion
  const lines = rules.flatMap(ruleLines)
  const entries = lines.filter((line) => !line.startsWith('#'))
  const listed = new Set(entries.map((line) => line.replace(/:.*$/, '')))
  const onlyAsked = (asked?.names.texts ?? []).filter((name) => !listed.has(name))
  return [
    ...heading.map((line) => `# ${line}`),
    ...leftOut.map((each) => `# ${leftOutWords(each, true)}`),
    ...onlyAsked.flatMap((name) => [`# ${ASKED}`, `${name}:${DNS_PORT}`]),
    ...lines,
    ...(entries.length + onlyAsked.length === 0 ? [NOTHING] : []),
    '',
  ].join('\n')
}

function ruleLines({ peer, ports, evidence }: SuggestedRule): readonly string[] {
  const places = ports.map(({ port, protocol }) => `${port}/${protocol.toLowerCase()}`)
  const words = evidence.words
  switch (peer.kind) {
    case 'names':
      return [`# ${words}`, ...linesOf(peer.names.texts, places)]
    case 'addresses':
      return [
        `# ${words}. No name was answered with these addresses.`,
        ...linesOf(
          peer.prefixes.map((prefix) => (prefix.includes(':') ? `[${prefix}]` : prefix)),
          places,
        ),
      ]
    case 'endpoints': {
      const pairs = [...selectorOf(peer.labels)].map((pair) => pair.join('=')).join(',')
      const what = `${namespaceOf(peer.labels)} ${pairs} ${places.join(' ')}`
      return [`# Left out, because a list has no labels: ${what} (${words})`]
    }
  }
}

function linesOf(targets: readonly string[], places: readonly string[]): readonly string[] {
  return targets.flatMap((target) =>
    places.map((place) =>
      place.endsWith('/sctp')
        ? `# Left out, because a list has no SCTP: ${target}:${place}`
        : `${target}:${place}`,
    ),
  )
}
