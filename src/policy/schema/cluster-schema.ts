// The JSON Schema of the `spec` of a ClusterNetworkPolicy. Like the reader, it takes only policies for egress.

import {
  ACTIONS,
  CLUSTER_PEER,
  CLUSTER_RULE,
  CLUSTER_SPEC,
  ITEMS_MAX,
  PODS,
  PRIORITY_MAX,
  RULE_NAME_MAX,
  SUBJECT,
  TIERS,
} from '../load/cluster-network-policy.ts'
import { DESTINATION_PORT, PORT_RANGE, PROTOCOL, PROTOCOL_PORT } from '../load/cluster-ports.ts'
import { DOMAIN_NAME } from '../load/domain-name.ts'
import {
  ANY,
  having,
  listOf,
  matching,
  NOTHING,
  objectOf,
  ref,
  TEXT,
  texts,
  when,
  type Schema,
} from './schema-parts.ts'

const portNumber: Schema = { type: 'integer', minimum: 1, maximum: 65_535 }

function shortList(items: Schema, min: number): Schema {
  return { ...listOf(items), minItems: min, maxItems: ITEMS_MAX }
}

/** A mapping with exactly one of its fields. */
function oneOf(
  table: Parameters<typeof objectOf>[0],
  values: Readonly<Record<string, Schema>>,
): Schema {
  return objectOf(table, values, {
    also: [{ oneOf: Object.keys(values).map((key) => having(key)) }],
  })
}

const destinationPort = oneOf(DESTINATION_PORT, {
  number: portNumber,
  range: objectOf(
    PORT_RANGE,
    { start: portNumber, end: portNumber },
    { also: [having('start', 'end')] },
  ),
})
const ports = oneOf(PROTOCOL_PORT, { destinationPort })
const protocol = oneOf(PROTOCOL, {
  tcp: ports,
  udp: ports,
  sctp: ports,
  destinationNamedPort: TEXT,
})

const pods = objectOf(
  PODS,
  { namespaceSelector: ref('selector'), podSelector: ref('selector') },
  { also: [having('namespaceSelector', 'podSelector')] },
)
const subject = oneOf(SUBJECT, { namespaces: ref('selector'), pods })
const peer = oneOf(CLUSTER_PEER, {
  namespaces: ref('selector'),
  pods,
  networks: shortList(TEXT, 1),
  domainNames: shortList(matching(DOMAIN_NAME), 1),
})
const isAccept: Schema = { properties: { action: { const: 'Accept' } } }
const withoutNames: Schema = { properties: { domainNames: NOTHING } }

const rule = objectOf(
  CLUSTER_RULE,
  {
    name: { ...TEXT, maxLength: RULE_NAME_MAX },
    action: texts(ACTIONS.keys()),
    to: shortList(peer, 1),
    protocols: { ...shortList(protocol, 1), description: 'Absent: every protocol and port' },
  },
  {
    refusesNull: true,
    also: [
      having('action', 'to'),
      when(isAccept, ANY, { properties: { to: listOf(withoutNames) } }),
    ],
  },
)

export const clusterSpec = objectOf(
  CLUSTER_SPEC,
  {
    tier: texts(TIERS),
    priority: { type: 'integer', minimum: 0, maximum: PRIORITY_MAX },
    subject: { ...subject, description: 'The endpoints of the policy' },
    ingress: ANY,
    egress: { ...shortList(rule, 0), description: 'The first rule that matches decides' },
  },
  {
    also: [having('tier', 'priority', 'subject'), { properties: { ingress: { type: 'null' } } }],
  },
)
