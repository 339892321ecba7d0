// Makes a DNS decision for FlowRing.addDns.

import {
  FLOW_KINDS,
  makeDnsFlow,
  type DnsFlow,
  type FlowKind,
} from '../../../src/flows/record/flow-kinds.ts'
import { wordsOf } from '../../../src/proxy/messages/client-columns.ts'
import { prefixOf, wireOf } from './node.ts'

type Given = Partial<Omit<DnsFlow, 'kind'>> & {
  readonly kind: FlowKind
  /** Address of the client. */
  readonly from?: string
}

/** By default, of endpoint 1 and type A. */
export function mkDnsFlow(name: string, { kind, from = '10.0.0.1', ...given }: Given): DnsFlow {
  const wire = wireOf(name)
  return {
    ...makeDnsFlow(),
    kind: FLOW_KINDS.indexOf(kind),
    endpoint: 1,
    wire,
    nameLength: wire.length,
    qtype: 1,
    clients: wordsOf(prefixOf(from).octets),
    ...given,
  }
}
