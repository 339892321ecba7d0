// The schemas of what the admin API says about sources and about a Kubernetes cluster.

import { z } from 'zod'
import { flag, list, shape, text, whole } from './shape-parts.ts'

/** The member `kubernetes` of the status. */
export const cluster = shape({
  server: text,
  version: text.describe('The version of the API server. Empty before its first answer'),
  collections: list({
    kind: text,
    state: z.enum(['listing', 'watching', 'away', 'absent', 'forbidden', 'held']),
    reason: text.describe('Empty while all is well'),
    objects: whole,
    faulty: whole.describe('Objects with faults, whose last good version is in force'),
    held: whole.describe(
      'Policies that the cluster does not have any more, and that are in force for a while',
    ),
    age: whole.describe('Seconds since the objects were known to be current. -1: never'),
  }),
  leftOut: z
    .record(z.string(), whole)
    .readonly()
    .describe('Pods of this node that are no endpoints, by reason'),
  unknownPods: shape({
    reason: text.describe(
      'Why this node does not know pods of other nodes. Empty: it knows them all',
    ),
    policies: list({
      policy: text,
      allows: flag.describe('True: a rule allows such pods, which stay closed'),
      denies: flag.describe('True: a rule denies such pods, which stay open if a rule allows them'),
    }).describe('Policies that select such pods'),
  }),
  events: shape({
    state: z
      .enum(['off', 'standby', 'writing', 'forbidden'])
      .describe('`standby`: another node writes Events about policies, or no node'),
    writer: text.describe('The node that writes. Empty: no node, or not known'),
    reason: text.describe('Empty while all is well'),
  }),
})

const source = shape({
  origin: z.enum(['files', 'kubernetes']),
  kind: text.describe('For example `policies`, or `CiliumNetworkPolicy`'),
  state: z.enum(['read', 'silent', 'listing', 'watching', 'away', 'absent', 'forbidden', 'held']),
  objects: whole,
  faulty: whole.describe('Files or objects with faults, whose last good version is in force'),
  held: whole.describe(
    'Policies that a cluster does not have any more, and that are in force for a while',
  ),
  age: whole.describe('Seconds since the source was known to be current. -1: never'),
  reason: text.describe('Empty while all is well'),
})

const placed = shape({ endpoint: text.describe('`namespace/name`'), enforced: z.literal(true) })

const displaced = shape({ endpoint: text })

const accepted = shape({ removed: whole.describe('How many policies were removed') })

export const CLUSTER_SCHEMAS = {
  Source: source,
  Placed: placed,
  Displaced: displaced,
  Accepted: accepted,
} as const

export type SourceShape = z.infer<typeof source>
export type PlacedShape = z.infer<typeof placed>
export type DisplacedShape = z.infer<typeof displaced>
export type AcceptedShape = z.infer<typeof accepted>
