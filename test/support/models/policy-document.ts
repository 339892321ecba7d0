// Writes a policy as the text of its object: the loader's inverse, for policies that tests make. The text is JSON, which is YAML. It can
// express only some policies: those with peers of one kind in a rule, and with port 0 for every port.

import { formatPrefix } from '../../../src/core/ip.ts'
import { formatProtocol, PORT_PROTOCOLS, type PortRange } from '../../../src/core/protocol.ts'
import type {
  LabelSelector,
  PeerSelector,
  Policy,
  PortRule,
  Rule,
} from '../../../src/policy/rule.ts'

export function formatPolicy(policy: Policy): string {
  const { kind, name, namespace, audited } = policy
  const annotations = audited === true ? { annotations: { 'namegate.io/audit': 'true' } } : {}
  const ruleOf = (action: Rule['action']): readonly object[] =>
    policy.rules.filter((rule) => rule.action === action).map(ruleDocument)
  const deny = ruleOf('deny')
  const allow = ruleOf('allow')
  // A policy needs at least one rule; this one allows nothing.
  const egress = allow.length + deny.length === 0 ? [{}] : allow
  return JSON.stringify({
    apiVersion: 'cilium.io/v2',
    kind,
    metadata: { name, ...(namespace === undefined ? {} : { namespace }), ...annotations },
    spec: {
      endpointSelector: selectorDocument(policy.selector),
      ...(egress.length === 0 ? {} : { egress }),
      ...(deny.length === 0 ? {} : { egressDeny: deny }),
      ...(policy.defaultDeny ? {} : { enableDefaultDeny: { egress: false } }),
    },
  })
}

/** Writes out the namespace prefix that the loader would add, which means the same. */
function selectorDocument({ matchLabels, matchExpressions }: LabelSelector): object {
  const labels = { matchLabels: Object.fromEntries(matchLabels) }
  return matchExpressions === undefined ? labels : { ...labels, matchExpressions }
}

function ruleDocument(rule: Rule): object {
  const toPorts = rule.toPorts?.map(portDocument)
  return { ...peersDocument(rule), ...(toPorts === undefined ? {} : { toPorts }) }
}

function peersDocument({ peers }: Rule): object {
  if (peers.kind === 'any') return {}
  const [first] = peers.selectors
  if (first === undefined) return { toCIDR: [] }
  const items = peers.selectors.map(peerDocument)
  switch (first.kind) {
    case 'fqdn':
      return { toFQDNs: items }
    case 'entity':
      return { toEntities: items }
    case 'endpoints':
      return { toEndpoints: items }
    case 'cidr':
      return peers.selectors.some((peer) => peer.kind === 'cidr' && peer.except.length > 0)
        ? { toCIDRSet: items }
        : { toCIDR: peers.selectors.map(prefixText) }
  }
}

function peerDocument(peer: PeerSelector): object | string {
  switch (peer.kind) {
    case 'fqdn':
      return peer.pattern.kind === 'exact'
        ? { matchName: peer.pattern.text }
        : { matchPattern: peer.pattern.text }
    case 'entity':
      return peer.entity
    case 'endpoints':
      return selectorDocument(peer.selector)
    case 'cidr':
      return { cidr: formatPrefix(peer.prefix), except: peer.except.map(formatPrefix) }
  }
}

function prefixText(peer: PeerSelector): string {
  if (peer.kind !== 'cidr') throw new Error('peers of one rule are of one kind')
  return formatPrefix(peer.prefix)
}

function portDocument({ ports, dns }: PortRule): object {
  const rules = dns === undefined ? {} : { rules: { dns: dns.map(dnsDocument) } }
  return { ports: groupProtocols(ports), ...rules }
}

function dnsDocument({ text }: { readonly text: string }): object {
  return { matchPattern: text }
}

/** Writes three equal ranges, one for each protocol, as `ANY`. */
function groupProtocols(ports: readonly PortRange[]): readonly object[] {
  const documents: object[] = []
  for (let i = 0; i < ports.length; i++) {
    const { low, high, protocol } = ports[i]!
    const together = ports.slice(i, i + 3)
    const isAny =
      together.length === 3 &&
      together.every(
        (range, n) =>
          range.low === low && range.high === high && range.protocol === PORT_PROTOCOLS[n],
      )
    const every = low === 0 && high === 65_535
    documents.push({
      port: every ? '0' : String(low),
      ...(every || low === high ? {} : { endPort: high }),
      protocol: isAny ? 'ANY' : formatProtocol(protocol),
    })
    if (isAny) i += 2
  }
  return documents
}
