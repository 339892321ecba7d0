// `readSelector` reads label selectors of policies, with `matchLabels` and `matchExpressions`. A selector chooses either the endpoints that
// a policy applies to, or peers. As in Cilium, a peer selector without a namespace means the policy's own namespace. A key without a label
// source matches labels of any source.

import { listWords, type FieldTable, type Reader } from '../../documents/source-document.ts'
import { labelKeyFault, labelValueFault, NAMESPACE_KEY, splitKey } from '../match/labels.ts'
import type { LabelExpression, LabelOperator, LabelSelector } from '../rule.ts'

export const SELECTOR: FieldTable = new Map([
  ['matchLabels', true],
  ['matchExpressions', true],
])
export const EXPRESSION: FieldTable = new Map([
  ['key', true],
  ['operator', true],
  ['values', true],
])
export const OPERATORS: readonly LabelOperator[] = ['In', 'NotIn', 'Exists', 'DoesNotExist']

/** Cilium's key for the labels of an endpoint's namespace. */
export const NAMESPACE_LABELS = 'io.cilium.k8s.namespace.labels.'

/** Kubernetes labels every namespace with its name under this key. A selector with this key means the endpoint's namespace label. */
const NAMESPACE_NAME = `${NAMESPACE_LABELS}kubernetes.io/metadata.name`

/** Label sources that no endpoint or resource has, and the field of a rule to use instead. */
export const FOREIGN_SOURCES: ReadonlyMap<string, string> = new Map([
  ['cidr', 'toCIDR'],
  ['fqdn', 'toFQDNs'],
  ['cidrgroup', 'toCIDRSet'],
  ['reserved', 'toEntities'],
])

export interface SelectorOptions {
  /** True for a peer selector. Faults then name the field of a rule that selects such peers. */
  readonly isPeer?: boolean
  /** Maps each key. If absent, keys stay as written. */
  readonly mapKey?: (key: string) => string
  /** The policy's namespace. `matchLabels` with another namespace are read as this namespace, as in Cilium. */
  readonly ownNamespace?: string | undefined
}

/** Reads a selector. Returns undefined after a fault in its form. */
export function readSelector(
  reader: Reader,
  { mapKey = (key) => key, ownNamespace, isPeer = false }: SelectorOptions = {},
): LabelSelector | undefined {
  const fields = reader.fields(SELECTOR)
  if (fields === undefined) return undefined
  const keyOf = (key: string): string => foldNamespaceName(mapKey(key))
  const matchLabels = new Map<string, string>()
  for (const [key, value] of fields.get('matchLabels')?.entries() ?? []) {
    const known = checkKey(value, key, 'key', isPeer)
    const text = readValue(value)
    if (!known || text === undefined) continue
    if (ownNamespace !== undefined && isNamespaceKey(key) && text !== ownNamespace) {
      value.note(`the policy selects in its own namespace: ${text} is read as ${ownNamespace}`)
      continue
    }
    const before = matchLabels.get(keyOf(key))
    if (before !== undefined && before !== text) value.expected(`${before}, as said before`)
    matchLabels.set(keyOf(key), text)
  }
  const expressions = (fields.get('matchExpressions')?.items() ?? []).flatMap((item) => {
    const expression = readExpression(item, isPeer)
    return expression === undefined ? [] : [{ ...expression, key: keyOf(expression.key) }]
  })
  return expressions.length === 0 ? { matchLabels } : { matchLabels, matchExpressions: expressions }
}

function readExpression(reader: Reader, isPeer: boolean): LabelExpression | undefined {
  const fields = reader.fields(EXPRESSION)
  if (fields === undefined) return undefined
  const keyReader = fields.get('key')
  const key = keyReader?.text('a label key')
  if (keyReader === undefined) reader.fault('found no key, expected a label key')
  const known =
    key !== undefined && keyReader !== undefined && checkKey(keyReader, key, 'value', isPeer)
  const operator = readOperator(reader, fields.get('operator'))
  const values = (fields.get('values')?.items() ?? []).flatMap((item) => readValue(item) ?? [])
  if (!known || operator === undefined) return undefined
  const wantsValues = operator === 'In' || operator === 'NotIn'
  const given = fields.get('values')
  if (wantsValues && values.length === 0 && (given === undefined || isEmptyList(given))) {
    return (given ?? reader).fault(`found no values, expected at least one for ${operator}`)
  }
  if (!wantsValues && given !== undefined && !isEmptyList(given)) {
    return given.fault(`found values, expected none for ${operator}`, 'key')
  }
  return { key, operator, values }
}

function readOperator(expression: Reader, reader: Reader | undefined): LabelOperator | undefined {
  const what = listWords(OPERATORS)
  if (reader === undefined) return expression.fault(`found no operator, expected ${what}`)
  const text = reader.text(what)
  if (text === undefined) return undefined
  return OPERATORS.find((each) => each === text) ?? reader.expected(what)
}

function readValue(reader: Reader): string | undefined {
  const text = reader.text()
  const fault = text === undefined ? undefined : labelValueFault(text)
  return fault === undefined ? text : reader.expected(fault)
}

function checkKey(reader: Reader, key: string, part: 'key' | 'value', isPeer: boolean): boolean {
  const expected = labelKeyFault(key)
  const { source } = splitKey(key, '')
  const field = FOREIGN_SOURCES.get(source)
  if (expected !== undefined) {
    reader.fault(`found ${JSON.stringify(key)}, expected ${expected}`, part)
  } else if (field !== undefined) {
    const [which, instead] = isPeer
      ? ['no endpoint or resource has', field]
      : ['no endpoint has', 'labels of endpoints']
    reader.fault(`found the label source ${source}, which ${which}: use ${instead}`, part)
  }
  return expected === undefined && field === undefined
}

function foldNamespaceName(text: string): string {
  const { source, key } = splitKey(text, 'any')
  const isName = key === NAMESPACE_NAME && (source === 'any' || source === 'k8s')
  return isName ? `k8s:${NAMESPACE_KEY}` : text
}

function isEmptyList({ value }: Reader): boolean {
  return Array.isArray(value) && value.length === 0
}

/** Returns every key of a selector, as written. */
function keysOf({ matchLabels, matchExpressions = [] }: LabelSelector): readonly string[] {
  return [...matchLabels.keys(), ...matchExpressions.map(({ key }) => key)]
}

/** Returns true if the key is the namespace label, with the source `k8s` or without a source. */
export function isNamespaceKey(text: string): boolean {
  const { source, key } = splitKey(text, 'any')
  return key === NAMESPACE_KEY && (source === 'any' || source === 'k8s')
}

/**
 * Adds the policy's own namespace to a peer selector without a namespace. In a clusterwide policy (`namespace` undefined) the selector
 * stays as it is, and can select every known endpoint. In a clusterwide policy, Cilium selects only endpoints with a namespace label. Every
 * known endpoint of namegate has this label.
 */
export function inNamespace(selector: LabelSelector, namespace: string | undefined): LabelSelector {
  const said = keysOf(selector).some((each) => {
    const { source, key } = splitKey(each, 'any')
    const isLabels = key.startsWith(NAMESPACE_LABELS) && (source === 'any' || source === 'k8s')
    return isLabels || isNamespaceKey(each)
  })
  if (namespace === undefined || said) return selector
  const own: readonly [string, string] = [`k8s:${NAMESPACE_KEY}`, namespace]
  return { ...selector, matchLabels: new Map([own, ...selector.matchLabels]) }
}
