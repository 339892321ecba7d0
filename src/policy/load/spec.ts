// `readSpec` reads one `spec` of a Cilium policy: its endpoint selector and its rules. It also decides whether the spec turns default deny
// on (docs/spec/semantics 2).

import {
  isMapping,
  notSupported,
  type FieldTable,
  type Reader,
  type Unsupported,
} from '../../documents/source-document.ts'
import { readRule } from './rule.ts'
import { readSelector } from './selector.ts'
import type { Policy, Rule } from '../rule.ts'

/** The fault of a field about ingress. With `policies.ingress: ignore` there is no fault. */
export const EGRESS_ONLY = 'is not supported: namegate decides egress only'

const SPEC: readonly (readonly [string, true | string | Unsupported])[] = [
  ['endpointSelector', true],
  ['egress', true],
  ['egressDeny', true],
  ['enableDefaultDeny', true],
  ['description', true],
  ['labels', true],
  ['ingress', EGRESS_ONLY],
  ['ingressDeny', EGRESS_ONLY],
  ['nodeSelector', notSupported('policies select endpoints')],
  ['log', notSupported('flows name the policy that decided')],
]
export const EGRESS_SPEC: FieldTable = new Map(SPEC)
/** The fields with `policies.ingress: ignore`. */
const WHOLE_SPEC: FieldTable = new Map([...SPEC, ['ingress', true], ['ingressDeny', true]])

export const DEFAULT_DENY: FieldTable = new Map([
  ['egress', true],
  ['ingress', true],
])

/** The fields of a Policy that come from its `spec`. */
export type Spec = Pick<Policy, 'selector' | 'rules' | 'defaultDeny' | 'halfEnforced' | 'position'>

/** Reads a spec. Returns undefined without a usable selector. `namespace` is the policy's, undefined for a clusterwide policy. */
export function readSpec(
  reader: Reader,
  namespace: string | undefined,
  ingress: 'error' | 'ignore' = 'error',
): Spec | undefined {
  const fields = reader.fields(ingress === 'ignore' ? WHOLE_SPEC : EGRESS_SPEC)
  if (fields === undefined) return undefined
  fields.get('description')?.text()
  fields.get('labels')?.items()
  const explicit = readDefaultDeny(fields.get('enableDefaultDeny'), ingress)
  const allow = fields.get('egress')?.items() ?? []
  const deny = fields.get('egressDeny')?.items() ?? []
  const rules: Rule[] = []
  for (const rule of allow) rules.push(...readRule(rule, 'allow', namespace))
  for (const rule of deny) rules.push(...readRule(rule, 'deny', namespace))
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
  const selector = readSelector(selectorReader, { ownNamespace: namespace })
  if (has('nodeSelector')) {
    // A nodeSelector is always refused, as in Cilium, because it would not be known which endpoints are in default deny.
    selectorReader.fault('can not stand beside nodeSelector', 'key')
  }
  if (selector === undefined) return undefined
  const spec = { selector, rules, defaultDeny: explicit ?? hasRules, position: reader.position }
  const isHalf = fields.has('ingress') || fields.has('ingressDeny')
  return isHalf ? { ...spec, halfEnforced: true } : spec
}

/** Returns `enableDefaultDeny.egress`. `enableDefaultDeny.ingress: true` is a fault, except when ingress is ignored. */
function readDefaultDeny(
  reader: Reader | undefined,
  onIngress: 'error' | 'ignore',
): boolean | undefined {
  const fields = reader?.fields(DEFAULT_DENY)
  const ingress = fields?.get('ingress')
  if (ingress?.flag() === true && onIngress === 'error') ingress.fault(EGRESS_ONLY, 'key')
  return fields?.get('egress')?.flag()
}
