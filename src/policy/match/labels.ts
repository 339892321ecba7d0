// Labels as texts (`source:key=value`) and whether a LabelSelector matches a set of them, by Cilium's rules:
// a selector key without a source, or with the source `any`, matches a label of any source; one with a
// source only that source's. An index is built once per endpoint; a selector is decided in one probe a key.

import type { LabelExpression, LabelSelector, Policy } from '../rule.ts'

/** Key of the label that says in which Kubernetes namespace an endpoint is; its source is `k8s`. */
export const NAMESPACE_KEY = 'io.kubernetes.pod.namespace'
/** Key of the label that says to which cluster an endpoint belongs; its source is `k8s`. */
export const CLUSTER_KEY = 'io.cilium.k8s.policy.cluster'
/** The namespace of endpoints and policies that name none. */
export const DEFAULT_NAMESPACE = 'default'
/** Source of labels that are written without one. */
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
