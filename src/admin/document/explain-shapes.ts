// The schema of an answer of `/v1/explain` (explain/explanation.ts).

import { z } from 'zod'
import { list, numbers, shape, text, texts, whole } from './shape-parts.ts'

export const explanation = shape({
  verdict: z.enum(['allow', 'deny', 'audit']),
  reason: text,
  rules: list({
    policy: text,
    file: text,
    line: whole,
    action: z.enum(['allow', 'deny', 'pass']),
    tier: text.describe('The tier of a ClusterNetworkPolicy, and its priority').exactOptional(),
    name: text.describe('The name of the rule').exactOptional(),
  }),
  selectors: texts,
  identities: numbers,
  labels: texts,
  default: shape({ egress: text, policies: texts, audited: texts }),
  nearest: shape({ policy: text, file: text, line: whole, missing: text }).nullable(),
  add: shape({ file: text, text })
    .nullable()
    .describe('A line that would allow what was asked, and the allow-list to add it to'),
  notes: texts,
})
