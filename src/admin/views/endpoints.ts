// Lists endpoints with their policies and the reason why an endpoint is not enforced, and external resources.

import type { ListedResource } from '../../enforcement/resource-control.ts'
import type { EndpointId } from '../../core/ids.ts'
import { formatAddress, formatPrefix, widthOf, type Prefix } from '../../core/ip.ts'
import { qualifiedName } from '../../enforcement/rule-origins.ts'
import type { Endpoint } from '../../endpoints/registry.ts'
import type { EndpointShape, ResourceShape } from '../document/shapes.ts'
import type { AdminState } from '../state.ts'
import { formatTime } from './rows.ts'

export function* endpointRows(state: AdminState): Iterable<EndpointShape> {
  const adopted = new Map<EndpointId, number>()
  for (const { endpoint } of state.core.datapath.adoption.list()) {
    adopted.set(endpoint, (adopted.get(endpoint) ?? 0) + 1)
  }
  for (const endpoint of state.endpoints.registry) {
    yield endpointRow(state, endpoint, adopted.get(endpoint.id) ?? 0)
  }
}

/** True if the datapath judges packets of the endpoint and can deny some: a policy selects the endpoint, or its default denies. */
export function isEnforcing(state: AdminState, endpoint: Endpoint): boolean {
  return unfencedReason(state, endpoint) === undefined && !state.policies.isOpen(endpoint)
}

/** Why the datapath judges no packets of an endpoint. Undefined when it judges them. */
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
    origin: endpoint.origin ?? '',
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

/** The audit settings of the endpoint, the node and the policies, each with its origin. */
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

export function* resourceRows(state: AdminState): Iterable<ResourceShape> {
  for (const resource of state.resources()) yield resourceRow(resource)
}

export function resourceRow(resource: ListedResource): ResourceShape {
  const { name, addresses, labels, origin, expires } = resource
  return {
    name,
    addresses: addresses.map(formatAddressOrPrefix),
    labels: [...labels].sort(),
    origin,
    expires: expires === undefined ? null : formatTime(expires),
  }
}

/** Formats a single address without its prefix length, and a prefix with its length. */
function formatAddressOrPrefix(prefix: Prefix): string {
  const { family, octets, length } = prefix
  return length === widthOf(family) ? formatAddress(family, octets) : formatPrefix(prefix)
}
