// Identity and rule that a reported packet met, by what is wanted now: the kernel's report has the packet alone.

import { identity, type EndpointId } from '../../core/ids.ts'
import { worldOf } from '../../identity/reserved.ts'
import { outcomeOf } from '../verdict.ts'
import type { ReportedPacket } from './reported-packet.ts'
import type { Table } from './tables/table.ts'

export interface Explanation {
  readonly identity: number
  readonly rule: number
}

export function explain(
  { prefixes, policies }: Table,
  endpoint: EndpointId,
  isScoped: boolean,
  packet: ReportedPacket,
): Explanation {
  const { family, target, protocol, targetPort } = packet
  const scopes = isScoped ? [endpoint, 0] : [0]
  const known = scopes
    .map((scope) => prefixes.longest(scope, family, target))
    .find(([id]) => id !== 0)
  const [id, addressClass] = known ?? [worldOf(family), worldOf(family)]
  const found = [id, addressClass, 0].flatMap(
    (key) => policies.find(endpoint, identity(key), protocol, targetPort) ?? [],
  )
  const { by } = outcomeOf(found.map(({ verdict }) => verdict))
  return { identity: id, rule: found.find(({ verdict }) => verdict === by)?.rule ?? 0 }
}
