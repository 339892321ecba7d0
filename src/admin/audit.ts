// Answers `POST /v1/audit`: turns audit on or off at run time. The page uses it for one endpoint.

import type { AuditResultShape } from './document/shapes.ts'
import type { Problem } from './problems.ts'
import { parseAudit } from './requests.ts'
import type { AdminState } from './state.ts'
import { noEndpoint } from './unknown-endpoint.ts'

export type AuditAnswer =
  | { readonly kind: 'ok'; readonly value: AuditResultShape }
  | { readonly kind: 'problem'; readonly problem: Problem }

/** Answers a request. `body` is the value of the request's JSON. */
export function auditBody(state: AdminState, body: unknown): AuditAnswer {
  const audit = parseAudit(body)
  if (audit.kind === 'bad') return problem(audit.problem ?? 'invalid-request', audit.reason)
  const { scope, on } = audit.value
  const result = state.setAudit(scope, on)
  if (result.kind !== 'ok') {
    const name = scope.kind === 'endpoint' ? scope.name : ''
    return problem('unknown-endpoint', noEndpoint(state, name))
  }
  const fault = state.kept?.use.settingsFault
  return fault === undefined
    ? { kind: 'ok', value: { on: on ?? null, mode: state.mode(), endpoints: result.endpoints } }
    : problem('not-kept', `audit: in force, but not kept over restarts yet: ${fault}`)
}

function problem(kind: Problem['kind'], detail: string): AuditAnswer {
  return { kind: 'problem', problem: { kind, detail } }
}
