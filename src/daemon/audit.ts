// Audit settings as the admin API sets and shows them: of the node and of an endpoint, with their origin. AuditControl keeps settings
// made at run time; here they take effect at once. Wiring only.

import type { AuditResult, AuditScope } from '../admin/state.ts'
import type { AuditDecision } from '../enforcement/audit-control.ts'
import type { Daemon } from './daemon.ts'
import type { Endpoint } from '../endpoints/registry.ts'
import { indexLabels, selectorMatches } from '../policy/match/labels.ts'

/** Of the endpoint alone: by name, by selector, by its file, by the config. */
export function auditOf({ sources, audit }: Daemon, endpoint: Endpoint): AuditDecision {
  const record = sources.recordOf(endpoint.name)
  return record === undefined ? { on: endpoint.audit, origin: undefined } : audit.decide(record)
}

/** Of the whole node; break glass sets the mode behind the settings. */
export function nodeAuditOf({ audit, mode }: Daemon): AuditDecision {
  const isSet = mode.now === 'audit'
  const origin = `mode ${mode.now}, set by hand`
  return isSet === audit.node.on ? audit.node : { on: isSet, origin }
}

/** Puts a setting in force; undefined takes back what was said at run time. */
export function setAudit(daemon: Daemon, scope: AuditScope, on: boolean | undefined): AuditResult {
  const { audit, endpoints } = daemon
  const isKnown = scope.kind !== 'endpoint' || endpoints.registry.byName(scope.name) !== undefined
  // What was said of an endpoint that is gone can be taken back.
  if (!isKnown && on !== undefined) return { kind: 'unknown-endpoint' }
  switch (scope.kind) {
    case 'node':
      audit.setNode(on)
      break
    case 'endpoint':
      audit.setEndpoint(scope.name, on)
      break
    case 'selector':
      audit.setSelector(scope.selector, on)
      break
    case 'all':
      audit.reset()
  }
  const coversNode = scope.kind === 'node' || scope.kind === 'all'
  if (coversNode && daemon.mode.now !== 'bypass') daemon.mode.set(daemon.mode.configured)
  const touched = [...endpoints.registry].filter((endpoint) => covers(scope, endpoint))
  for (const endpoint of touched) endpoints.setAudit(endpoint, auditOf(daemon, endpoint).on)
  daemon.core.committer.commit()
  return { kind: 'ok', endpoints: touched.map(({ name }) => name) }
}

function covers(scope: AuditScope, { name, labels }: Endpoint): boolean {
  switch (scope.kind) {
    case 'node':
      return false
    case 'endpoint':
      return scope.name === name
    case 'selector':
      return selectorMatches(scope.selector, indexLabels(labels))
    case 'all':
      return true
  }
}
