// The schema of the answer of `/v1/top`.

import type { z } from 'zod'
import { rules } from './flow-shapes.ts'
import { list, shape, text, texts, time, whole, decimal } from './shape-parts.ts'

export const top = shape({
  time,
  seconds: decimal.describe(
    'The time that was counted. Less than the window if the daemon no longer has the flows of the whole window',
  ),
  flows: whole,
  verdicts: shape({ allow: whole, deny: whole, audit: whole, error: whole, event: whole }),
  names: list({ name: text, flows: whole, refused: whole }).describe('Names of questions'),
  endpoints: list({
    endpoint: text.nullable().describe('Null for clients that are no known endpoint'),
    flows: whole,
    refused: whole,
  }),
  refusals: list({
    count: whole,
    last: time.describe('Time of the last of these flows'),
    endpoint: text.nullable(),
    what: text.describe('For example `A www.example.com` or `TCP 198.51.100.9:443`'),
    names: texts.describe('Names of the peer of a packet'),
    reason: text.nullable(),
    rules,
  }).describe('Equal refusals, and what audit allowed'),
})

export type TopShape = z.infer<typeof top>
