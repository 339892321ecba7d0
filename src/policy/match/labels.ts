// This file reads and formats labels (`source:key=value`), and decides if a LabelSelector matches the labels of an endpoint. The rules are
// Cilium's: a selector key without a source, or with the source `any`, matches labels of any source. A key with another source matches only
// labels of that source. The index of labels is built once for each endpoint. A selector then costs one probe for each of its keys.

import type { LabelExpression, LabelSelector, Policy } from '../rule.ts'

/** The key of the label that names the Kubernetes namespace of an endpoint. The source of this label is `k8s`. */
export const NAMESPACE_KEY = 'io.kubernetes.pod.namespace'
/** The key of the label that names the cluster of an endpoint. The source of this label is `k8s`. */
export const CLUSTER_KEY = 'io.cilium.k8s.policy.cluster'
/** The cluster of endpoints if no configuration names a cluster. */
export const DEFAULT_CLUSTER = 'default'
/** The namespace of endpoints and policies that name no namespace. */
export const DEFAULT_NAMESPACE = 'default'
/** The source of labels that name no source. */
export const DEFAULT_SOURCE = 'external'

const ANY_SOURCE = 'any'

/** The parts of a label. `source` contains no colon, and `key` contains no equals sign. */
export interface LabelParts {
  readonly source: string
  readonly key: string
  readonly value: string
}

/** Formats a label as `source:key=value`, or as `source:key` if the value is empty (as Cilium writes reserved labels). */
export function formatLabel({ source, key, value }: LabelParts): string {
  return value === '' ? `${source}:${key}` : `${source}:${key}=${value}`
}

/** Splits the text of a label. The source is the text before the first colon, if this colon stands before any equals sign. */
export function splitLabel(text: string): LabelParts {
  const equals = text.indexOf('=')
  const value = equals < 0 ? '' : text.slice(equals + 1)
  return { ...splitKey(equals < 0 ? text : text.slice(0, equals), DEFAULT_SOURCE), value }
}

/** Splits `source:key`. A key without a source gets `defaultSource`. */
export function splitKey(
  text: string,
  defaultSource: string,
): { readonly source: string; readonly key: string } {
  const colon = text.indexOf(':')
  if (colon <= 0) return { source: defaultSource, key: text.slice(colon + 1) }
  return { source: text.slice(0, colon), key: text.slice(colon + 1) }
}

/** Checks a label key as written (`app`, `k8s:app`). Returns what was expected; undefined if the key is good. */
export function labelKeyFault(text: string): string | undefined {
  const { source, key } = splitKey(text, DEFAULT_SOURCE)
  if (key === '') return 'a label key, such as app or k8s:app'
  if (text.length > 512) return 'a label key of at most 512 characters'
  if (!/^[A-Za-z0-9][\w.-]*$/.test(source)) return 'a label source of letters, digits, - _ and .'
  if (/[=\s\p{C}]/u.test(key)) return 'a label key without blanks and ='
  return undefined
}

/** Checks a label value. Returns what was expected; undefined if the value is good. */
export function labelValueFault(value: string): string | undefined {
  if (value.length > 512) return 'a label value of at most 512 characters'
  return /[\p{C}]/u.test(value) ? 'a label value without control characters' : undefined
}

/** The labels of an endpoint, indexed for matching. If they name no namespace, the index adds the namespace `default`. */
export interface LabelIndex {
  /** The value of each `source:key`. */
  readonly bySource: ReadonlyMap<string, string>
  /** The values of each `key`, of any source. */
  readonly byKey: ReadonlyMap<string, readonly string[]>
}

/** Builds the index of an endpoint's labels (`source:key=value`). */
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

/** True if every condition of the selector holds for the labels. */
export function selectorMatches(selector: LabelSelector, labels: LabelIndex): boolean {
  for (const [key, wanted] of selector.matchLabels) {
    if (!valuesOf(key, labels).includes(wanted)) return false
  }
  return selector.matchExpressions?.every((each) => expressionHolds(each, labels)) ?? true
}

/** True if the condition holds. For a key without a source, `NotIn` and `DoesNotExist` must hold for the labels of every source. */
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

/** Returns the values of a key. Without a source, returns the values of labels of any source. */
function valuesOf(text: string, labels: LabelIndex): readonly string[] {
  const { source, key } = splitKey(text, ANY_SOURCE)
  if (source === ANY_SOURCE) return labels.byKey.get(key) ?? []
  const value = labels.bySource.get(`${source}:${key}`)
  return value === undefined ? [] : [value]
}

/**
 * Returns the canonical text of a selector, such as `!tier,app=a,env in (x,y)`. Selectors with equal texts are equal. `*` selects
 * everything. Quotes parts that a comma or an equals sign would make ambiguous.
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

/** Returns the Kubernetes namespace that the labels name; `default` if they name none. */
export function namespaceOf(labels: LabelIndex): string {
  return labels.bySource.get(`k8s:${NAMESPACE_KEY}`) ?? DEFAULT_NAMESPACE
}

/** True if the policy selects an endpoint with these labels. A policy with a namespace selects only inside its namespace. */
export function policySelects(
  policy: Pick<Policy, 'namespace' | 'selector'>,
  labels: LabelIndex,
): boolean {
  if (policy.namespace !== undefined && policy.namespace !== namespaceOf(labels)) return false
  return selectorMatches(policy.selector, labels)
}

// Buckets find selectors and endpoints by label, without regard to the label source. A selector is in the bucket of one label that it
// requires, or in `ANY_LABEL`. An endpoint is in the buckets of all its labels.

/** The bucket of selectors that require no particular label. */
export const ANY_LABEL = ''

/** Returns the bucket of a selector. */
export function bucketOf({ matchLabels }: LabelSelector): string {
  // Use the last label, because the first is often the namespace, which many selectors share.
  const last = [...matchLabels].at(-1)
  return last === undefined ? ANY_LABEL : bucketOfLabel(splitKey(last[0], '').key, last[1])
}

/** Returns the bucket of a label. */
export function bucketOfLabel(key: string, value: string): string {
  return `${key}=${value}`
}

/** Returns the buckets of all labels. */
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
 * Parses labels of an endpoint from the command line: `app=web,k8s:env=prod`. Returns sorted `source:key=value` texts. A label without a
 * source becomes two labels, with the sources `external` and `k8s`, so that policies with either source match. A namespace label without
 * a source gets only `k8s`.
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

/** Parses one label like `parseLabels`. */
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
