// Endpoints: their labels and addresses, whether they are fenced, and which policies apply.

import type { EndpointId } from '../../core/ids.ts'
import { formatAddress, formatPrefix, widthOf, type Prefix } from '../../core/ip.ts'
import { qualifiedName } from '../../enforcement/rule-origins.ts'
import type { Endpoint } from '../../endpoints/registry.ts'
import type { EndpointShape } from '../shapes.ts'
import type { AdminState } from '../state.ts'

export function* endpointRows(state: AdminState): Iterable<EndpointShape> {
  const adopted = new Map<EndpointId, number>()
  for (const { endpoint } of state.core.datapath.adoption.list()) {
    adopted.set(endpoint, (adopted.get(endpoint) ?? 0) + 1)
  }
  for (const endpoint of state.endpoints.registry) {
    yield endpointRow(state, endpoint, adopted.get(endpoint.id) ?? 0)
  }
}

/** Whether anything fences an endpoint: policy, or a default that is not to allow everything. */
export function isEnforcing(state: AdminState, endpoint: Endpoint): boolean {
  return unfencedReason(state, endpoint) === undefined && !state.policies.isOpen(endpoint)
}

/** What keeps an endpoint from being fenced; undefined when nothing does. */
export function unfencedReason(state: AdminState, endpoint: Endpoint): string | undefined {
  if (state.mode() === 'bypass') return 'mode bypass'
  const hook = state.core.datapath.hooks.stateOf(endpoint.id)
  switch (hook.kind) {
    case 'attached':
      return undefined
    case 'unfenced':
      return endpoint.hook.kind === 'none'
        ? 'it has no interface and no cgroup'
        : `datapath ${state.core.datapath.kind} enforces nothing`
    case 'waiting':
    case 'failed':
      return hook.reason
  }
}

function endpointRow(state: AdminState, endpoint: Endpoint, adoptedFlows: number): EndpointShape {
  const unfenced = unfencedReason(state, endpoint)
  const seen = state.policies.identityLabels.of(endpoint.labels)
  const reasons = [
    ...(unfenced === undefined ? [] : [unfenced]),
    ...(state.policies.isOpen(endpoint) ? ['open: no policy selects it'] : []),
    ...audits(state, endpoint),
  ]
  return {
    id: endpoint.id,
    name: endpoint.name,
    addresses: endpoint.addresses.map(formatAddressOrPrefix),
    labels: [...new Set([...endpoint.labels, ...seen])].sort(),
    enforcing: isEnforcing(state, endpoint),
    reason: reasons.join('; '),
    audit: state.auditOf(endpoint).on || state.mode() === 'audit',
    policies: state.policies.policiesOf(endpoint.id).map(qualifiedName).sort(),
    policyRevision: state.policies.revision,
    realizedRevision: state.transition.realizedRevision,
    adoptedFlows,
  }
}

/** What was said of its audit at each level, and where. */
function audits(state: AdminState, endpoint: Endpoint): readonly string[] {
  const [own, node] = [state.auditOf(endpoint), state.nodeAudit()]
  const audited = state.policies.policiesOf(endpoint.id).filter((each) => each.audited === true)
  return [
    ...(own.on ? [`audit: ${own.origin ?? 'endpoint'}`] : []),
    ...(!own.on && own.origin !== undefined ? [`audit off: ${own.origin}`] : []),
    ...(node.on ? [`audit: node, ${node.origin ?? 'config'}`] : []),
    ...(audited.length > 0
      ? [`audit: policies ${audited.map(qualifiedName).sort().join(', ')}`]
      : []),
  ]
}

/** An address stands without length, a prefix with it. */
export function formatAddressOrPrefix(prefix: Prefix): string {
  const { family, octets, length } = prefix
  return length === widthOf(family) ? formatAddress(family, octets) : formatPrefix(prefix)
}
