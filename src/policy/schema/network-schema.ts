// The JSON Schema of the `spec` of a NetworkPolicy. Like the reader, it takes only policies for egress.

import { PEER, PORT, PROTOCOLS, RULE, SPEC } from '../load/network-policy.ts'
import { port, portNumber } from './cilium-schema.ts'
import { ANY, having, listOf, objectOf, ref, texts, type Schema, when } from './schema-parts.ts'

const entry = objectOf(
  PORT,
  {
    port: { not: { enum: [0, '0'] }, ...port },
    endPort: portNumber,
    protocol: texts(PROTOCOLS.keys()),
  },
  {
    also: [
      { properties: { port: { not: { type: 'null' } } } },
      when(having('endPort'), having('port')),
    ],
  },
)

const peer = objectOf(
  PEER,
  { podSelector: ref('selector'), namespaceSelector: ref('selector'), ipBlock: ref('cidrSet') },
  {
    also: [
      {
        oneOf: [having('ipBlock'), { anyOf: [having('podSelector'), having('namespaceSelector')] }],
      },
    ],
  },
)

const rule = objectOf(
  RULE,
  {
    to: { ...listOf(peer), description: 'Absent or empty: every destination' },
    ports: { ...listOf(entry), description: 'Absent or empty: every port' },
  },
  { refusesNull: true },
)

const egressOnly: Schema = {
  ...having('policyTypes'),
  properties: { policyTypes: { type: 'array', minItems: 1, items: { const: 'Egress' } } },
}

export const networkSpec = objectOf(
  SPEC,
  {
    podSelector: {
      ...ref('selector'),
      description: 'The endpoints of the policy. `{}`: every endpoint',
    },
    policyTypes: listOf(texts(['Egress'])),
    egress: { ...listOf(rule), description: 'What the endpoints can reach' },
    ingress: ANY,
  },
  { also: [having('podSelector'), egressOnly, { properties: { ingress: { type: 'null' } } }] },
)
