// The schemas of the bodies that the admin API takes.

import { z } from 'zod'
import { flag, mapping, optional, shape, text, texts } from './shape-parts.ts'

export const REQUEST_SCHEMAS = {
  ResourceBody: shape({
    addresses: texts,
    labels: mapping.exactOptional(),
    ports: mapping.exactOptional(),
    ttl: optional.describe('For example `12h`. If absent, the resource stays until it is removed'),
  }),
  Question: shape({
    endpoint: text,
    ask: optional.describe('Name that the endpoint asks for'),
    server: optional.describe('`ADDRESS:PORT` of the server that it asks'),
    protocol: optional.describe('`UDP` or `TCP`'),
    name: optional.describe('Name by whose addresses the endpoint connects'),
    address: optional.describe('Address to which the endpoint connects'),
    port: optional.describe('For example `443/TCP`'),
  }),
  OwnQuestion: shape({
    endpoint: text,
    query: text.describe('DNS message in base64'),
    protocol: optional.describe('`UDP` or `TCP`'),
    server: optional.describe('`ADDRESS:PORT`, where the endpoint chooses its server'),
  }),
  Place: shape({
    namespace: text,
    name: text,
    uid: text.describe('Empty if the network plugin does not know it'),
    interface: text.describe('The host side of the veth of the pod'),
    addresses: texts.describe('Without prefix lengths'),
  }),
  Displace: shape({ namespace: text, name: text, uid: text }),
  Mode: shape({ mode: z.enum(['enforce', 'audit', 'bypass', 'pinned']) }),
  Audit: shape({
    scope: z.enum(['node', 'endpoint', 'selector', 'all']),
    on: flag.nullable().describe('Null takes back what was set at run time'),
    name: optional.describe('Name of the endpoint, with scope `endpoint`'),
    matchLabels: mapping.exactOptional().describe('Labels, with scope `selector`'),
  }),
} as const
