// Sets and shows audit settings for the admin API: of the node and of an endpoint, with the origin of each setting. AuditControl keeps
// settings that were made at run time. setAudit keeps such a setting and puts it in force at once.

import type { AuditResult, AuditScope } from '../admin/state.ts'
import type { AuditDecision } from '../enforcement/audit-control.ts'
import type { Daemon } from './daemon.ts'
import type { Endpoint } from '../endpoints/registry.ts'
import { indexLabels, selectorMatches } from '../policy/match/labels.ts'

/** The decision for one endpoint. The first of these settings decides: by name, by selector, by the endpoint's file, by the config. */
export function auditOf({ sources, audit }: Daemon, endpoint: Endpoint): AuditDecision {
  const record = sources.recordOf(endpoint.name)
  return record === undefined ? { on: endpoint.audit, origin: undefined } : audit.decide(record)
}

/** The decision for the whole node. A mode that was set by hand (break-glass mode) wins over the settings, which stay as they are. */
export function nodeAuditOf({ audit, mode }: Daemon): AuditDecision {
  const isSet = mode.now === 'audit'
  const origin = `mode ${mode.now}, set by hand`
  return isSet === audit.node.on ? audit.node : { on: isSet, origin }
}

/** Puts a setting in force and commits. `on` undefined removes the setting that was made at run time. */
export function setAudit(daemon: Daemon, scope: AuditScope, on: boolean | undefined): AuditResult {
  const { audit, endpoints } = daemon
  const isKnown = scope.kind !== 'endpoint' || endpoints.registry.byName(scope.name) !== undefined
  // The setting of an endpoint that no longer exists can still be removed.
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
