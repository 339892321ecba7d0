// The schemas of the lines of `/v1/flows` and `/v1/flows/kept`, for the OpenAPI document. Their types are those of flow-shapes.ts, which a
// test compares. A kept line stands for equal flows, so it has a count and two times, and no number.

import { z } from 'zod'
import { FLOW_KINDS } from '../flows/record/flow-kinds.ts'
import { list, shape, text, texts, time, whole } from './shape-parts.ts'

const verdict = z.enum(['allow', 'deny', 'audit', 'error', 'event'])
const rules = list({ policy: text, file: text, line: whole })
const dnsKind = z.enum(FLOW_KINDS).exclude(['drop', 'audit', 'policy-lost', 'expired-use'])

const started = {
  number: whole.describe('The first flow after the start of the daemon has number 0'),
  time,
}
const kept = {
  time: time.describe('Time of the first of these flows'),
  last: time.describe('Time of the last of these flows'),
  count: whole.describe('How many equal flows the line stands for'),
  node: text.describe('Name of the host'),
}
const base = {
  verdict,
  endpoint: text
    .nullable()
    .describe('Null when the client is no known endpoint, or the endpoint was removed'),
  endpointLabels: texts,
}

const dns = {
  kind: dnsKind,
  ...base,
  client: text.describe('Address of the client, or `namegate` for a question of namegate itself'),
  name: text.nullable().describe('Null when newer flows have overwritten the name'),
  type: text,
  rcode: text.nullable().describe('Null when no server answered'),
  outcome: text.nullable(),
  addresses: whole.describe('How many addresses namegate learned from the answer'),
  reason: text
    .nullable()
    .describe('What was wrong with the query, which bound was hit, or how the upstream failed'),
  rules: rules.describe('Rules that denied the name, or would have denied it without audit'),
}

const packet = {
  kind: z.enum(['drop', 'audit']),
  ...base,
  peer: text,
  protocol: text,
  port: whole,
  identity: whole,
  labels: texts,
  names: texts,
  deniedBy: z
    .enum(['rule', 'default'])
    .nullable()
    .describe('`rule`: a deny rule. `default`: no rule allows the packet'),
  rules: rules.describe('Rules that denied the packet, or would have denied it without audit'),
  reason: text,
}

const policyLost = { kind: z.literal('policy-lost'), ...base, policies: text }

const expiredUse = {
  kind: z.literal('expired-use'),
  ...base,
  peer: text.describe('The address to which the endpoint connected'),
  names: texts,
  expired: z.number().describe('Seconds from the end of the TTL until the connection was seen'),
}

export const FLOW_SCHEMAS = {
  DnsFlow: shape({ ...started, ...dns }),
  PacketFlow: shape({ ...started, ...packet }),
  PolicyLost: shape({ ...started, ...policyLost }),
  ExpiredUse: shape({ ...started, ...expiredUse }),
  KeptDnsFlow: shape({ ...kept, ...dns }),
  KeptPacketFlow: shape({ ...kept, ...packet }),
  KeptPolicyLost: shape({ ...kept, ...policyLost }),
  KeptExpiredUse: shape({ ...kept, ...expiredUse }),
  LostFlows: shape({
    ...kept,
    kind: z.literal('lost'),
    verdict: z.literal('event'),
    endpoint: z.null(),
  }),
} as const

/** Schemas that are one of several others. */
export const UNIONS = {
  Flow: ['DnsFlow', 'PacketFlow', 'PolicyLost', 'ExpiredUse'],
  KeptFlow: ['KeptDnsFlow', 'KeptPacketFlow', 'KeptPolicyLost', 'KeptExpiredUse', 'LostFlows'],
} as const
