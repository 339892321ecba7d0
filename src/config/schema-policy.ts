// Defines the sections of the configuration file about policy, endpoints, the datapath and bounds: their keys with default, unit and text,
// and the fields of Config that the keys become.

import { z } from 'zod'
import {
  isLimitKey,
  LIMITS,
  makeLimits,
  type Limit,
  type LimitKey,
  type Limits,
} from '../core/limits.ts'
import { DEFAULT_PIN_PATH } from '../core/pin-path.ts'
import { formatDuration } from '../core/quantity.ts'
import { describeValue } from '../documents/source-document.ts'
import { DEFAULT_IDENTITY_LABELS } from '../policy/identity-labels.ts'
import { labelKeyFault } from '../policy/match/labels.ts'
import type { LabelSelector } from '../policy/rule.ts'
import {
  duration,
  faultAt,
  flag,
  group,
  integer,
  list,
  oneOf,
  pinPath,
  section,
  words,
} from './schema-values.ts'

/** Says in the reference where relative paths start. */
export const RELATIVE = 'relative to the folder of this file'

type Path = readonly (string | number)[]

const labels = z
  .record(z.string(), z.string({ error: 'a text' }))
  .superRefine((each, context) => {
    for (const key of Object.keys(each)) {
      const fault = labelKeyIssue(key, [key])
      if (fault !== undefined) context.addIssue(fault)
    }
  })
  .transform((each): ReadonlyMap<string, string> => new Map(Object.entries(each)))

function labelKeyIssue(key: string, path: Path) {
  const expected = labelKeyFault(key)
  if (expected === undefined) return undefined
  return faultAt(path, `found ${describeValue(key)}, expected ${expected}`)
}

const expression = z.strictObject({
  key: words('label key').meta({ description: 'key of the label.' }),
  operator: z
    .enum(['In', 'NotIn', 'Exists', 'DoesNotExist'], {
      error: 'In, NotIn, Exists or DoesNotExist',
    })
    .meta({ description: 'condition on the label: In, NotIn, Exists or DoesNotExist.' }),
  values: z
    .array(z.string({ error: 'a text' }))
    .prefault([])
    .meta({ description: 'values for In and NotIn (default []).' }),
})

/** Checks that In and NotIn have values, and that the other operators have none. */
function expressionFaults({ key, operator, values }: z.output<typeof expression>, path: Path) {
  const keyFault = labelKeyIssue(key, [...path, 'key'])
  const wants = operator === 'In' || operator === 'NotIn'
  const found = values.length === 0 ? 'no values, expected at least one' : 'values, expected none'
  return [
    ...(keyFault === undefined ? [] : [keyFault]),
    ...(wants === values.length > 0
      ? []
      : [faultAt([...path, 'values'], `found ${found} for ${operator}`)]),
  ]
}

export const selector = section(
  'Labels of endpoints',
  {
    matchLabels: labels
      .prefault({})
      .meta({ description: 'labels that the endpoint must have, all of them (default {}).' }),
    matchExpressions: list(expression, {
      default: [],
      doc: 'conditions on labels, all of which must hold',
      unit: 'list of { key, operator, values }',
    }),
  },
  ({ matchLabels, matchExpressions }, context): LabelSelector => {
    for (const [n, expression] of matchExpressions.entries()) {
      for (const fault of expressionFaults(expression, ['matchExpressions', n]))
        context.addIssue(fault)
    }
    return matchExpressions.length === 0 ? { matchLabels } : { matchLabels, matchExpressions }
  },
)

export const policies = section(
  'Files with policies',
  {
    paths: list(words('path'), {
      default: ['policies'],
      doc: 'policy files, and folders of policy files',
      unit: `paths, ${RELATIVE}`,
    }),
    watch: flag({
      default: true,
      doc: 'true reads changed files of policies, endpoints and resources again',
    }),
    'allow-list-endpoints': labels.prefault({}).meta({
      description:
        'labels of the endpoints to which *.allow files apply; empty = all endpoints (default {}).',
    }),
    ingress: oneOf(['error', 'ignore'], {
      default: 'error',
      doc: 'policies with ingress rules: error refuses them; ignore loads only their egress rules',
    }),
    'unsupported-fields': oneOf(['error', 'warn'], {
      default: 'error',
      doc: 'fields that are known but not supported: error refuses the policy; warn loads it, and the rule or peer with the field allows nothing',
    }),
    'cidr-matches-endpoints': flag({
      default: false,
      doc: 'true lets CIDR rules also select known endpoints, resources and the node',
    }),
  },
  (keys) => ({
    paths: keys.paths,
    watch: keys.watch,
    allowListEndpoints: keys['allow-list-endpoints'],
    ingress: keys.ingress,
    unsupportedFields: keys['unsupported-fields'],
    cidrMatchesEndpoints: keys['cidr-matches-endpoints'],
  }),
)

export const endpoints = section(
  'Workloads to which policy applies',
  {
    files: list(words('path'), {
      default: ['endpoints.yaml'],
      doc: 'files of endpoints',
      unit: `paths, ${RELATIVE}`,
    }),
    'identity-labels': list(words('label key, with ! in front to leave it out'), {
      default: [...DEFAULT_IDENTITY_LABELS],
      doc: 'label keys that identities and policies use; ! in front leaves a key out; if a key without ! is listed, all keys that are not listed are left out',
      unit: 'label keys, or prefixes of keys such as team.*',
    }),
  },
  (keys) => ({
    files: keys.files,
    identityLabels: keys['identity-labels'],
  }),
)

export const datapath = section(
  'The part that enforces policy',
  {
    kind: oneOf(['memory', 'ebpf', 'nftables'], {
      default: 'memory',
      doc: 'kind of enforcement; memory enforces nothing and shows what would be enforced',
    }),
    ebpf: group('The eBPF datapath', {
      'pin-path': pinPath({
        default: DEFAULT_PIN_PATH,
        doc: 'folder in bpffs for the pinned maps',
        unit: `path without a dot, ${RELATIVE}`,
      }),
    }).prefault({}),
    verify: duration({
      default: '1m',
      doc: "time between two comparisons of the kernel's maps with the wanted entries; namegate repairs differences",
    }),
    'adopt-existing': duration({
      default: '10m',
      doc: 'time for which connections stay allowed that are older than the first enforcement of their endpoint',
    }),
  },
  (keys) => {
    const { kind } = keys
    const shared = { adoptExistingMs: keys['adopt-existing'], pinPath: keys.ebpf['pin-path'] }
    return kind === 'ebpf' ? { kind, ...shared, verifyMs: keys.verify } : { kind, ...shared }
  },
)

/** Makes a bound of core/limits.ts a key under `limits`. */
function bound(limit: Limit) {
  const { min, max } = limit
  const doc = `${limit.doc}; at the bound: ${limit.atBound}`
  return limit.unit === 'ms'
    ? duration({ default: formatDuration(limit.default), min, max, doc })
    : integer({ default: limit.default, min, max, doc, unit: limit.unit })
}

export const limits = section(
  'Bounds of tables, messages and times',
  Object.fromEntries(Object.entries(LIMITS).map(([key, limit]) => [key, bound(limit)])),
  toLimits,
)

function toLimits(keys: Readonly<Record<string, number>>): Limits {
  const overrides: { -readonly [Key in LimitKey]?: number } = {}
  for (const [key, value] of Object.entries(keys)) if (isLimitKey(key)) overrides[key] = value
  return makeLimits(overrides)
}
