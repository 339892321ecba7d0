// The JSON Schema of the `spec` of a Cilium policy: its selector, and its rules with peers and ports.

import { ALLOW_PORTS, DENY_PORTS, L7_RULES, PORT, PROTOCOLS } from '../load/ports.ts'
import { ALLOW_RULE, CIDR_SET, DENY_RULE, ENTITIES, PEERS } from '../load/rule.ts'
import { DEFAULT_DENY, EGRESS_SPEC } from '../load/spec.ts'
import { FQDN } from '../load/names.ts'
import { EXPRESSION, FOREIGN_SOURCES, OPERATORS, SELECTOR } from '../load/selector.ts'
import {
  ANY,
  having,
  listOf,
  matching,
  objectOf,
  ref,
  TEXT,
  texts,
  type Schema,
  when,
} from './schema-parts.ts'

const NAME_FORM = /^\s*[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*\.?\s*$/
const PATTERN_FORM = /^\s*[A-Za-z0-9_*-]+(?:\.[A-Za-z0-9_*-]+)*\.?\s*$/
const PREFIX_FORM = /^[0-9A-Fa-f:.]+(?:\/[0-9]{1,3})?$/
const PORT_FORM =
  /^(?:0|[1-9][0-9]{0,4}|(?=[0-9-]*[A-Za-z])[A-Za-z0-9](?:[A-Za-z0-9-]{0,13}[A-Za-z0-9])?)$/
const KEY_FORM = new RegExp(`^(?!(?:${[...FOREIGN_SOURCES.keys()].join('|')}):)[^=\\s]+$`)
const TEXT_MAX = 512

const label = { type: 'string', maxLength: TEXT_MAX } as const
const key: Schema = matching(KEY_FORM, { maxLength: TEXT_MAX })

export const portNumber: Schema = { type: 'integer', minimum: 0, maximum: 65_535 }
export const port: Schema = {
  description: 'A number, or the name of a port',
  anyOf: [portNumber, matching(PORT_FORM)],
}
export const prefix: Schema = matching(PREFIX_FORM, {
  description: 'An address or a prefix, such as 10.0.0.0/8',
})

/** The words, in any case of letters. An editor offers the words as they are. */
function anyCase(words: Iterable<string>): Schema {
  const known = [...words].filter((word) => word !== '')
  const forms = known.map((word) => word.replace(/[A-Z]/g, (big) => `[${big}${big.toLowerCase()}]`))
  return { anyOf: [texts(known), { type: 'string', pattern: `^(?:${forms.join('|')})?$` }] }
}

const withValues: Schema = { properties: { operator: texts(['In', 'NotIn']) } }
const withoutValues: Schema = { properties: { values: { maxItems: 0 } } }
const valuesAsNeeded = when(withValues, having('values'), withoutValues)

const expression = objectOf(
  EXPRESSION,
  { key, operator: texts(OPERATORS), values: listOf(label) },
  { also: [having('key', 'operator'), valuesAsNeeded] },
)

const selector = objectOf(SELECTOR, {
  matchLabels: { type: 'object', propertyNames: key, additionalProperties: label },
  matchExpressions: listOf(expression),
})

const nameFields = {
  matchName: matching(NAME_FORM, { description: 'A name, such as www.example.com' }),
  matchPattern: matching(PATTERN_FORM, {
    description:
      'A pattern. `*` stands for any characters inside a label, and `**.` in front for one or more labels',
  }),
}
/** An entry of `toFQDNs`, which has one of both fields. */
const oneName = objectOf(FQDN, nameFields, {
  also: [{ oneOf: [having('matchName'), having('matchPattern')] }],
})
/** An entry of `rules.dns`, which can have both. */
const names = objectOf(FQDN, nameFields, {
  also: [{ anyOf: [having('matchName'), having('matchPattern')] }],
})

/** An entry of `toCIDRSet`, or an ipBlock of a NetworkPolicy. */
const cidrSet = objectOf(
  CIDR_SET,
  { cidr: prefix, except: listOf(prefix) },
  { also: [having('cidr')] },
)

const portEntry = objectOf(
  PORT,
  { port, endPort: portNumber, protocol: anyCase(PROTOCOLS.keys()) },
  { also: [having('port')] },
)
const l7 = objectOf(L7_RULES, {
  dns: {
    ...listOf(ref('names')),
    description: 'Names that can be asked. An empty list: every name',
  },
})

function portRule(action: 'allow' | 'deny'): Schema {
  const ports = listOf(portEntry)
  if (action === 'deny') return objectOf(DENY_PORTS, { ports })
  const needsPorts = when(having('rules'), having('ports'))
  return objectOf(ALLOW_PORTS, { ports, rules: l7 }, { also: [needsPorts] })
}

/** Two kinds of peers can not stand beside each other, unless one list is empty. */
const onePeerKind: Schema = {
  not: { anyOf: PEERS.flatMap((a, i) => PEERS.slice(i + 1).map((b) => having(a, b))) },
}

function rule(action: 'allow' | 'deny'): Schema {
  const peers = {
    toEndpoints: { ...listOf(ref('selector')), description: 'Endpoints and resources by labels' },
    toCIDR: { ...listOf(prefix), description: 'Addresses and prefixes' },
    toCIDRSet: { ...listOf(ref('cidrSet')), description: 'Prefixes with exceptions' },
    toEntities: { ...listOf(texts(ENTITIES)), description: 'Groups of addresses' },
    toPorts: {
      ...listOf(portRule(action)),
      description: 'The ports of these peers. Absent: every port and protocol',
    },
  }
  const options = { refusesNull: true, also: [onePeerKind] } as const
  if (action === 'deny') return objectOf(DENY_RULE, peers, options)
  const toFQDNs = { ...listOf(ref('oneName')), description: 'The addresses of these names' }
  return objectOf(ALLOW_RULE, { toFQDNs, ...peers }, options)
}

const someRule: Schema = {
  anyOf: [
    having('egress'),
    having('egressDeny'),
    {
      ...having('enableDefaultDeny'),
      properties: {
        enableDefaultDeny: { required: ['egress'], properties: { egress: { const: true } } },
      },
    },
    { required: ['ingress'] },
    { required: ['ingressDeny'] },
  ],
}

const spec = objectOf(
  EGRESS_SPEC,
  {
    endpointSelector: {
      ...ref('selector'),
      description: 'The endpoints of the policy. `{}`: every endpoint',
    },
    egress: { ...listOf(rule('allow')), description: 'What the endpoints can reach' },
    egressDeny: {
      ...listOf(rule('deny')),
      description: 'What the endpoints can never reach. No allow rule outweighs it',
    },
    enableDefaultDeny: objectOf(DEFAULT_DENY, {
      egress: { type: 'boolean', description: 'False: the policy denies nothing by default' },
      ingress: { const: false },
    }),
    description: TEXT,
    labels: listOf(ANY),
  },
  { also: [having('endpointSelector'), someRule] },
)

/** The definitions to which the schemas of policies refer. */
export const CILIUM_DEFS = { selector, names, oneName, cidrSet, spec } as const
