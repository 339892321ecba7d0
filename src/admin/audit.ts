// Answers `POST /v1/audit`: turns audit on or off at run time. The page uses it for one endpoint. The answer waits until the datapath
// enforces the setting.

import type { AuditResultShape } from './document/shapes.ts'
import type { Problem } from './problems.ts'
import { parseAudit } from './requests.ts'
import type { AdminState } from './state.ts'
import { noEndpoint } from './unknown-endpoint.ts'

export type AuditAnswer =
  | { readonly kind: 'ok'; readonly value: AuditResultShape }
  | { readonly kind: 'problem'; readonly problem: Problem }

const LOOK_MS = 2
const WAIT_MS = 10_000

/** Answers a request. `body` is the value of the request's JSON. */
export async function auditBody(state: AdminState, body: unknown): Promise<AuditAnswer> {
  const audit = parseAudit(body)
  if (audit.kind === 'bad') return problem(audit.problem ?? 'invalid-request', audit.reason)
  const { scope, on } = audit.value
  const result = state.setAudit(scope, on)
  if (result.kind !== 'ok') {
    const name = scope.kind === 'endpoint' ? scope.name : ''
    return problem('unknown-endpoint', noEndpoint(state, name))
  }
  if (!(await untilConfirmed(state))) {
    return problem('unavailable', 'audit: set, but not in force yet: the datapath is behind')
  }
  const fault = state.kept?.use.settingsFault
  return fault === undefined
    ? { kind: 'ok', value: { on: on ?? null, mode: state.mode(), endpoints: result.endpoints } }
    : problem('not-kept', `audit: in force, but not kept over restarts yet: ${fault}`)
}

/** Waits until the datapath has confirmed all changes of now. Returns false when WAIT_MS is over first. */
async function untilConfirmed({ clock, core: { committer } }: AdminState): Promise<boolean> {
  const until = clock.now() + WAIT_MS
  const needed = committer.desired
  while (committer.revision < needed) {
    if (clock.now() > until) return false
    await new Promise<void>((resolve) => void clock.after(LOOK_MS, resolve))
  }
  return true
}

function problem(kind: Problem['kind'], detail: string): AuditAnswer {
  return { kind: 'problem', problem: { kind, detail } }
}
