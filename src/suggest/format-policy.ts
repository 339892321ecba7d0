// A suggestion as a CiliumNetworkPolicy, as a person would write it: block style, a comment on what each rule rests on. Other
// programs' parsers and our own loader take it. Pure.

import {
  DEFAULT_NAMESPACE,
  DEFAULT_SOURCE,
  NAMESPACE_KEY,
  splitLabel,
} from '../policy/match/labels.ts'
import type { NamesAndPatterns } from './collapse.ts'
import type { SuggestedPeer } from './peers.ts'
import { isEmpty, type LeftOut, type Suggestion } from './suggest.ts'

export interface PolicyText {
  readonly name: string
  readonly namespace: string
  /** `matchLabels` of the endpoints. */
  readonly selector: ReadonlyMap<string, string>
  /** Lines above it, without `# `. */
  readonly heading: readonly string[]
  /** Whether rules say what they rest on. */
  readonly evidence: boolean
}

/** Sources that need not be written: a key without source matches any. */
const PLAIN_SOURCES: readonly string[] = [DEFAULT_SOURCE, 'k8s']

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

/** What is said of something that no rule is about. */
export function leftOutWords({ what, why, evidence }: LeftOut, withEvidence: boolean): string {
  return `Left out, because ${why}: ${what}${withEvidence ? ` (${evidence.words})` : ''}`
}

/**
 * `matchLabels` that select just endpoints with these labels: without sources, unless two sources have the same key. The
 * namespace is not among them.
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

/** Quoted where YAML could take it for something else than this text. */
function scalar(text: string): string {
  const isPlain =
    /^[a-z][a-z0-9./_-]*$/i.test(text) && !/^(?:true|false|null|yes|no|on|off|y|n)$/i.test(text)
  return isPlain ? text : `'${text.replaceAll("'", "''")}'`
}
