// Labels as texts (`source:key=value`), and whether a LabelSelector matches a set of them, by Cilium's rules: a selector key
// without a source, or with the source `any`, matches a label of any source; a key with a source matches that source alone. An
// index is built once for each endpoint; a selector costs one probe a key.

import type { LabelExpression, LabelSelector, Policy } from '../rule.ts'

/** Key of the label with the Kubernetes namespace of an endpoint; its source is `k8s`. */
export const NAMESPACE_KEY = 'io.kubernetes.pod.namespace'
/** Key of the label with the cluster of an endpoint; its source is `k8s`. */
export const CLUSTER_KEY = 'io.cilium.k8s.policy.cluster'
/** The namespace of endpoints and policies without one. */
export const DEFAULT_NAMESPACE = 'default'
/** The source of labels without one. */
export const DEFAULT_SOURCE = 'external'

const ANY_SOURCE = 'any'

/** Parts of a label; `source` has no colon, `key` no equals sign. */
export interface LabelParts {
  readonly source: string
  readonly key: string
  readonly value: string
}

/** `source:key=value`, or `source:key` when the value is empty (as Cilium writes reserved labels). */
export function formatLabel({ source, key, value }: LabelParts): string {
  return value === '' ? `${source}:${key}` : `${source}:${key}=${value}`
}

/** Splits a label's text; everything before the first colon that stands before an equals sign is the source. */
export function splitLabel(text: string): LabelParts {
  const equals = text.indexOf('=')
  const value = equals < 0 ? '' : text.slice(equals + 1)
  return { ...splitKey(equals < 0 ? text : text.slice(0, equals), DEFAULT_SOURCE), value }
}

/** Splits `source:key`; a key without a source gets the given one. */
export function splitKey(
  text: string,
  defaultSource: string,
): { readonly source: string; readonly key: string } {
  const colon = text.indexOf(':')
  if (colon <= 0) return { source: defaultSource, key: text.slice(colon + 1) }
  return { source: text.slice(0, colon), key: text.slice(colon + 1) }
}

/** What is wrong with a label key as written (`app`, `k8s:app`), or undefined. */
export function labelKeyFault(text: string): string | undefined {
  const { source, key } = splitKey(text, DEFAULT_SOURCE)
  if (key === '') return 'a label key, such as app or k8s:app'
  if (text.length > 512) return 'a label key of at most 512 characters'
  if (!/^[A-Za-z0-9][\w.-]*$/.test(source)) return 'a label source of letters, digits, - _ and .'
  if (/[=\s\p{C}]/u.test(key)) return 'a label key without blanks and ='
  return undefined
}

/** What is wrong with a label value, or undefined. */
export function labelValueFault(value: string): string | undefined {
  if (value.length > 512) return 'a label value of at most 512 characters'
  return /[\p{C}]/u.test(value) ? 'a label value without control characters' : undefined
}

/**
 * An endpoint's labels, ready to be matched. Keys of the maps are `source:key` and `key`. An endpoint whose
 * labels name no namespace is matched as one in `default`.
 */
export interface LabelIndex {
  readonly bySource: ReadonlyMap<string, string>
  readonly byKey: ReadonlyMap<string, readonly string[]>
}

export function indexLabels(texts: Iterable<string>): LabelIndex {
  const bySource = new Map<string, string>()
  const byKey = new Map<string, string[]>()
  const add = ({ source, key, value }: LabelParts): void => {
    bySource.set(`${source}:${key}`, value)
    const values = byKey.get(key)
    if (values === undefined) byKey.set(key, [value])
    else values.push(value)
  }
  for (const text of texts) add(splitLabel(text))
  if (!bySource.has(`k8s:${NAMESPACE_KEY}`)) {
    add({ source: 'k8s', key: NAMESPACE_KEY, value: DEFAULT_NAMESPACE })
  }
  return { bySource, byKey }
}

/** Whether every entry of the selector is among the labels. */
export function selectorMatches(selector: LabelSelector, labels: LabelIndex): boolean {
  for (const [key, wanted] of selector.matchLabels) {
    if (!valuesOf(key, labels).includes(wanted)) return false
  }
  return selector.matchExpressions?.every((each) => expressionHolds(each, labels)) ?? true
}

/** The negative ones look at every source that the key may be of: none may speak against them. */
function expressionHolds(expression: LabelExpression, labels: LabelIndex): boolean {
  const found = valuesOf(expression.key, labels)
  switch (expression.operator) {
    case 'In':
      return found.some((value) => expression.values.includes(value))
    case 'NotIn':
      return !found.some((value) => expression.values.includes(value))
    case 'Exists':
      return found.length > 0
    case 'DoesNotExist':
      return found.length === 0
  }
}

/** What the labels have under a key, of its source or, without one, of any. */
function valuesOf(text: string, labels: LabelIndex): readonly string[] {
  const { source, key } = splitKey(text, ANY_SOURCE)
  if (source === ANY_SOURCE) return labels.byKey.get(key) ?? []
  const value = labels.bySource.get(`${source}:${key}`)
  return value === undefined ? [] : [value]
}

/**
 * A selector's canonical text: `!tier,app=a,env in (x,y)`; equal texts mean the same, `*` selects everything. Parts
 * that a comma or an equals sign would make ambiguous are quoted.
 */
export function formatSelector({ matchLabels, matchExpressions = [] }: LabelSelector): string {
  const parts = [...matchLabels].map(([key, value]) => `${quoted(key)}=${quoted(value)}`)
  for (const { key, operator, values } of matchExpressions) {
    const list = [...new Set(values)].sort().map(quoted).join(',')
    if (operator === 'Exists') parts.push(quoted(key))
    else if (operator === 'DoesNotExist') parts.push(`!${quoted(key)}`)
    else parts.push(`${quoted(key)} ${operator === 'In' ? 'in' : 'notin'} (${list})`)
  }
  return parts.length === 0 ? '*' : [...new Set(parts)].sort().join(',')
}

function quoted(text: string): string {
  return /^[\w./:-]*$/.test(text) ? text : JSON.stringify(text)
}

/** The Kubernetes namespace that the labels name; `default` when they name none. */
export function namespaceOf(labels: LabelIndex): string {
  return labels.bySource.get(`k8s:${NAMESPACE_KEY}`) ?? DEFAULT_NAMESPACE
}

/** Whether the policy applies: a namespaced one selects inside its namespace only. */
export function policySelects(
  policy: Pick<Policy, 'namespace' | 'selector'>,
  labels: LabelIndex,
): boolean {
  if (policy.namespace !== undefined && policy.namespace !== namespaceOf(labels)) return false
  return selectorMatches(policy.selector, labels)
}

// Buckets find selectors and endpoints by label: a selector is in the bucket of one label that it requires, whatever its
// source, or in `ANY_LABEL`; an endpoint is in the buckets of all its labels.

/** The bucket of selectors that require no particular label. */
export const ANY_LABEL = ''

export function bucketOf({ matchLabels }: LabelSelector): string {
  // The last label, because the namespace, which many selectors share, is the first.
  const last = [...matchLabels].at(-1)
  return last === undefined ? ANY_LABEL : bucketOfLabel(splitKey(last[0], '').key, last[1])
}

export function bucketOfLabel(key: string, value: string): string {
  return `${key}=${value}`
}

/** The buckets of all labels, each once. */
export function bucketsOf({ byKey }: LabelIndex): ReadonlySet<string> {
  const buckets = new Set<string>()
  for (const [key, values] of byKey)
    for (const value of values) buckets.add(bucketOfLabel(key, value))
  return buckets
}

export function addTo<Item>(map: Map<string, Set<Item>>, key: string, item: Item): void {
  const items = map.get(key)
  if (items === undefined) map.set(key, new Set([item]))
  else items.add(item)
}

export function removeFrom<Item>(map: Map<string, Set<Item>>, key: string, item: Item): void {
  const items = map.get(key)
  items?.delete(item)
  if (items?.size === 0) map.delete(key)
}

export type LabelsResult =
  | { readonly kind: 'ok'; readonly labels: readonly string[] }
  | { readonly kind: 'bad'; readonly reason: string }

/**
 * Parses labels of an endpoint from the command line: `app=web,k8s:env=prod` -> sorted `source:key=value`. A label without a
 * source counts as `external` and as `k8s`, so that policies with either source match; the namespace label is `k8s` alone.
 */
export function parseLabels(text: string): LabelsResult {
  const labels = new Set<string>()
  for (const part of text.split(',')) {
    const trimmed = part.trim()
    if (trimmed === '') continue
    const read = parseLabel(trimmed)
    if (read.kind === 'bad') return read
    for (const label of read.labels) labels.add(label)
  }
  return { kind: 'ok', labels: [...labels].sort() }
}

/** As `parseLabels`, for one label. */
export function parseLabel(text: string): LabelsResult {
  const equals = text.indexOf('=')
  const written = equals < 0 ? text : text.slice(0, equals)
  const value = equals < 0 ? '' : text.slice(equals + 1)
  const fault = labelKeyFault(written) ?? labelValueFault(value)
  if (fault !== undefined) {
    return { kind: 'bad', reason: `found ${JSON.stringify(text)}, expected ${fault}` }
  }
  const sources = written === NAMESPACE_KEY ? ['k8s'] : [DEFAULT_SOURCE, 'k8s']
  const { source, key } = splitKey(written, '')
  const given = source === '' ? sources : [source]
  return { kind: 'ok', labels: given.map((each) => formatLabel({ source: each, key, value })) }
}
