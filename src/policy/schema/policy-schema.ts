// Makes the JSON Schema of policy files, which `namegate policy schema` prints for editors. It takes what `policy check` takes by default, so
// fields that namegate refuses are errors in it. Some faults that `policy check` reports need more than a schema, such as a name that is used
// twice.

import { DURATION_PATTERN } from '../../core/quantity.ts'
import { API_VERSION, CLUSTER_API, DOCUMENT, NETWORK_API } from '../load/load.ts'
import { ANNOTATIONS, METADATA, OWN_ANNOTATION } from '../load/metadata.ts'
import type { PolicyKind } from '../rule.ts'
import { CILIUM_DEFS } from './cilium-schema.ts'
import { clusterSpec } from './cluster-schema.ts'
import { networkSpec } from './network-schema.ts'
import {
  ANY,
  having,
  listOf,
  matching,
  NOTHING,
  objectOf,
  orNothing,
  ref,
  texts,
  type Schema,
  when,
} from './schema-parts.ts'

const NAME_FORM = /^[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?$/
const NAMESPACE_FORM = /^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?$/

const annotations: Schema = {
  type: 'object',
  properties: Object.fromEntries(
    [...ANNOTATIONS].map(([key, words]) => [
      key,
      words.length === 0 ? matching(DURATION_PATTERN) : texts(words),
    ]),
  ),
  propertyNames: {
    anyOf: [
      texts(ANNOTATIONS.keys()),
      { not: matching(new RegExp(`^${OWN_ANNOTATION.replace('.', '\\.')}`)) },
    ],
  },
}

const metadata = objectOf(
  METADATA,
  {
    ...Object.fromEntries([...METADATA.keys()].map((key) => [key, ANY])),
    name: matching(NAME_FORM, { maxLength: 253 }),
    namespace: matching(NAMESPACE_FORM, { maxLength: 63 }),
    annotations,
    labels: { type: 'object' },
  },
  { also: [having('name')] },
)

const specs = { spec: orNothing(ref('spec')), specs: orNothing(listOf(ref('spec'))) }
const someSpec: Schema = { anyOf: [having('spec'), having('specs')] }
const noNamespace: Schema = { properties: { namespace: NOTHING } }

const KINDS: Readonly<Record<Exclude<PolicyKind, 'AllowList'>, Schema>> = {
  CiliumNetworkPolicy: {
    properties: { apiVersion: { const: API_VERSION }, ...specs },
    ...someSpec,
  },
  CiliumClusterwideNetworkPolicy: {
    properties: { apiVersion: { const: API_VERSION }, metadata: noNamespace, ...specs },
    ...someSpec,
  },
  NetworkPolicy: {
    properties: { apiVersion: { const: NETWORK_API }, spec: networkSpec, specs: NOTHING },
    required: ['spec'],
  },
  ClusterNetworkPolicy: {
    properties: {
      apiVersion: { const: CLUSTER_API },
      metadata: {
        properties: {
          namespace: NOTHING,
          annotations: { properties: { 'namegate.io/audit': { not: { const: 'true' } } } },
        },
      },
      spec: clusterSpec,
      specs: NOTHING,
    },
    required: ['spec'],
  },
}

const policy = objectOf(
  DOCUMENT,
  {
    apiVersion: texts([API_VERSION, NETWORK_API, CLUSTER_API]),
    kind: texts(Object.keys(KINDS)),
    metadata,
    spec: ANY,
    specs: ANY,
    status: ANY,
  },
  {
    also: [
      having('apiVersion', 'kind', 'metadata'),
      ...Object.entries(KINDS).map(([kind, form]) =>
        when({ properties: { kind: { const: kind } } }, form),
      ),
    ],
  },
)

/** The schema of one document of a policy file: a policy, or a list of rules in the old form of Cilium's agent. */
export function policyJsonSchema(): Schema {
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'Policies of namegate',
    ...when({ type: 'array' }, { ...listOf(ref('spec')), minItems: 1 }, ref('policy')),
    $defs: { policy, ...CILIUM_DEFS },
  }
}
