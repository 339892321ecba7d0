// The schemas and types of the lines of `/v1/flows` and `/v1/flows/kept`: one JSON object for each flow (docs/spec/promises "Outside
// contracts"). Both lines have the same facts in one of four forms. A kept line stands for equal flows, so it has a count and two times, and
// no number.

import { z } from 'zod'
import { FLOW_KINDS } from '../../flows/record/flow-kinds.ts'
import { shape, text, texts, time, whole } from './shape-parts.ts'

const verdict = z.enum(['allow', 'deny', 'audit', 'error', 'event'])

const rule = shape({
  policy: text.describe('`namespace/name`. A clusterwide policy has only a name'),
  file: text,
  line: whole
    .describe('Absent for an allow-list, which refuses what none of its lines allows')
    .exactOptional(),
})
export const rules = z.array(rule).readonly()

const base = {
  verdict,
  endpoint: text
    .nullable()
    .describe(
      'The name that the endpoint had when the flow was recorded. Null when the client was no known endpoint',
    ),
  endpointLabels: texts.describe(
    'Labels that the endpoint has, or had when it was removed. Empty when `endpoint` is null',
  ),
}

const dns = shape({
  kind: z
    .enum(FLOW_KINDS)
    .exclude(['drop', 'audit', 'policy-lost', 'expired-use'])
    .describe('What was decided about the query'),
  ...base,
  client: text.describe(
    'Address of the client, or `namegate` for a question of namegate itself, by `ask --as` or `dns.prewarm`',
  ),
  name: text.nullable().describe('Null when newer flows have overwritten the name'),
  type: text,
  rcode: text.nullable().describe("The code of the server's answer. Null when no server answered"),
  outcome: text.nullable(),
  addresses: whole.describe('How many addresses namegate learned from the answer'),
  reason: text
    .nullable()
    .describe(
      'What was wrong with the query, which bound was hit, or how the upstream failed. `server` and `sources-silent`: why the query was denied although policy allows the name. Null for other flows',
    ),
  rules: rules.describe(
    'Rules that denied the name, or would have denied it without audit. Empty when no policy denies it',
  ),
})

const packet = shape({
  kind: z
    .enum(['drop', 'audit'])
    .describe('`audit`: the packet would have been dropped without audit'),
  ...base,
  peer: text,
  protocol: text,
  port: whole,
  identity: whole,
  labels: texts.describe("Labels of the peer's identity"),
  names: texts.describe('The first few names by which the peer was known at that time'),
  expiredName: text
    .nullable()
    .describe(
      'A name of the peer that the endpoint asked, and that had expired at that time. Null if `names` is not empty, or if none is remembered',
    ),
  guarded: z
    .boolean()
    .describe('True if the peer is a guarded address: an answer with it opens nothing'),
  deniedBy: z
    .enum(['rule', 'default'])
    .nullable()
    .describe(
      '`rule`: a deny rule, which no allow rule can outweigh. `default`: no rule allows the packet. Null for other reasons',
    ),
  rules: rules.describe(
    'Rules that denied the packet, or would have denied it without audit. If no rule allows it, the policies that turned default deny on. Empty when there is none',
  ),
  reason: text,
})

const policyLost = shape({
  kind: z.literal('policy-lost').describe('The endpoint lost its last policy'),
  ...base,
  policies: text,
})

const expiredUse = shape({
  kind: z
    .literal('expired-use')
    .describe('The endpoint connected to an address after the TTL of the name'),
  ...base,
  peer: text.describe('The address to which the endpoint connected'),
  names: texts.describe(
    'The name whose TTL was over. Empty when newer flows have overwritten the name',
  ),
  expired: z.number().describe('Seconds from the end of the TTL until the connection was seen'),
})

const facts = z.discriminatedUnion('kind', [dns, packet, policyLost, expiredUse])

const started = shape({
  number: whole.describe('The first flow after the start of the daemon has number 0'),
  time,
})

const kept = shape({
  time: time.describe('Time of the first of these flows'),
  last: time.describe('Time of the last of these flows'),
  count: whole.describe('How many equal flows the line stands for'),
  node: text.describe('Name of the host'),
})

const lost = shape({
  kind: z.literal('lost').describe('Flows that came too fast to be kept'),
  verdict: z.literal('event'),
  endpoint: z.null(),
})

export const FLOW_SCHEMAS = {
  FlowRule: rule,
  DnsFlow: dns,
  PacketFlow: packet,
  PolicyLost: policyLost,
  ExpiredUse: expiredUse,
  LostFlows: lost,
  FlowFacts: facts,
  Flow: z.intersection(started, facts),
  KeptFlow: z.intersection(kept, z.union([facts, lost])),
} as const

type Started = z.infer<typeof started>

export type FlowVerdict = z.infer<typeof verdict>
/** A rule that decided. If no rule allowed the name or packet, a policy that turned default deny on. */
export type FlowRuleShape = z.infer<typeof rule>
/** A DNS query. */
export type DnsFlowShape = Started & z.infer<typeof dns>
/** A packet that was dropped, or that would have been dropped without audit. */
export type PacketFlowShape = Started & z.infer<typeof packet>
export type FlowShape = Started & z.infer<typeof facts>
