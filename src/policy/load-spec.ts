// One `spec` of a policy: whom it selects, its rules, and whether it turns default deny on (SEMANTICS 2).

import { isMapping, type FieldTable, type Reader } from '../core/source-document.ts'
import { labelKeyFault, labelValueFault, NAMESPACE_KEY, splitKey } from './labels.ts'
import { readRule } from './load-rule.ts'
import type { LabelSelector, Policy, Rule } from './rule.ts'

const EGRESS_ONLY = 'is not supported: namegate decides egress only'

const SPEC: FieldTable = new Map<string, true | string>([
  ['endpointSelector', true],
  ['egress', true],
  ['egressDeny', true],
  ['enableDefaultDeny', true],
  ['description', true],
  ['labels', true],
  ['ingress', EGRESS_ONLY],
  ['ingressDeny', EGRESS_ONLY],
  ['nodeSelector', 'is not supported: policies select endpoints'],
  ['log', 'is not supported'],
])

const SELECTOR: FieldTable = new Map([
  ['matchLabels', true],
  ['matchExpressions', true],
])

const DEFAULT_DENY: FieldTable = new Map([
  ['egress', true],
  ['ingress', true],
])

export type Spec = Pick<Policy, 'selector' | 'rules' | 'defaultDeny' | 'position'>

/** Reads a spec; `namespace` is the policy's, undefined for a clusterwide one. */
export function readSpec(reader: Reader, namespace: string | undefined): Spec | undefined {
  const fields = reader.fields(SPEC)
  if (fields === undefined) return undefined
  fields.get('description')?.text()
  fields.get('labels')?.items()
  const explicit = readDefaultDeny(fields.get('enableDefaultDeny'))
  const allow = fields.get('egress')?.items() ?? []
  const deny = fields.get('egressDeny')?.items() ?? []
  const rules: Rule[] = []
  for (const rule of allow) rules.push(...readRule(rule, 'allow'))
  for (const rule of deny) rules.push(...readRule(rule, 'deny'))
  const hasRules = allow.length + deny.length > 0
  const has = (key: string): boolean => isMapping(reader.value) && key in reader.value
  if (!hasRules && explicit !== true && !has('ingress') && !has('ingressDeny')) {
    reader.fault(
      'found no rule in egress or egressDeny, expected one; `egress: [{}]` denies everything',
    )
  }
  const selectorReader = fields.get('endpointSelector')
  if (selectorReader === undefined) {
    if (has('nodeSelector')) return undefined
    return reader.fault('found no endpointSelector, expected one; `{}` selects every endpoint')
  }
  const selector = readSelector(selectorReader, namespace)
  if (selector === undefined) return undefined
  return { selector, rules, defaultDeny: explicit ?? hasRules, position: reader.position }
}

/** `enableDefaultDeny.egress`; that of ingress may only be off. */
function readDefaultDeny(reader: Reader | undefined): boolean | undefined {
  const fields = reader?.fields(DEFAULT_DENY)
  const ingress = fields?.get('ingress')
  if (ingress?.flag() === true) ingress.fault(EGRESS_ONLY, 'key')
  return fields?.get('egress')?.flag()
}

function readSelector(reader: Reader, namespace: string | undefined): LabelSelector | undefined {
  const fields = reader.fields(SELECTOR)
  if (fields === undefined) return undefined
  const expressions = fields.get('matchExpressions')
  if ((expressions?.items()?.length ?? 0) > 0) expressions?.fault('is not built yet', 'key')
  const matchLabels = new Map<string, string>()
  for (const [key, value] of fields.get('matchLabels')?.entries() ?? []) {
    const keyFault = labelKeyFault(key)
    if (keyFault !== undefined)
      value.fault(`found ${JSON.stringify(key)}, expected ${keyFault}`, 'key')
    const text = value.text()
    const valueFault = text === undefined ? undefined : labelValueFault(text)
    if (valueFault !== undefined) value.expected(valueFault)
    if (text === undefined) continue
    if (namespace !== undefined && isNamespaceKey(key) && text !== namespace) {
      value.expected(`${namespace}: the policy selects in its own namespace only`)
    }
    matchLabels.set(key, text)
  }
  return { matchLabels }
}

function isNamespaceKey(text: string): boolean {
  const { source, key } = splitKey(text, 'any')
  return key === NAMESPACE_KEY && (source === 'any' || source === 'k8s')
}
