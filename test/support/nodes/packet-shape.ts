// A refused packet in the form of the admin API.

import type { PacketFlowShape } from '../../../src/admin/document/flow-shapes.ts'

export const DROP_SHAPE: PacketFlowShape = {
  number: 1,
  time: '',
  verdict: 'deny',
  kind: 'drop',
  endpoint: 'a',
  endpointLabels: [],
  peer: '203.0.113.9',
  protocol: 'TCP',
  port: 443,
  identity: 2,
  labels: ['world-ipv4'],
  names: [],
  expiredName: null,
  guarded: false,
  deniedBy: 'default',
  rules: [],
  reason: 'policy',
}
