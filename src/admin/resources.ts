// Answers `GET`, `PUT` and `DELETE /v1/resources/NAME`, which return, add, change or remove an external resource. The answer is
// sent when the datapath enforces the change and the disk has it. If this takes longer than WAIT_MS, or if the disk refuses, the
// answer is an error. The error says that the change is or will be in force. The same request then waits again.

import type { IncomingMessage } from 'node:http'
import type { ResourceOutcome } from '../enforcement/resource-control.ts'
import { messageOf } from '../core/errors.ts'
import type { Problem, ProblemKind } from './problems.ts'
import { unmet } from './preconditions.ts'
import { readJson } from './requests.ts'
import type { ResourceChangeShape, ResourceShape } from './document/shapes.ts'
import type { AdminState } from './state.ts'
import { resourceRow } from './views/endpoints.ts'
import { formatTime } from './views/rows.ts'

export type ResourceAnswer =
  | {
      readonly kind: 'ok'
      readonly value: ResourceChangeShape | ResourceShape
      readonly etag?: string | undefined
    }
  | { readonly kind: 'bad'; readonly problem: Problem }

export const RESOURCE_PATH = '/v1/resources/'

const LOOK_MS = 1
const WAIT_MS = 10_000

/** Returns or changes the resource that the path names. `encodedName` is the name as it is encoded in the path. */
export async function answerResource(
  state: AdminState,
  encodedName: string,
  request: IncomingMessage,
): Promise<ResourceAnswer> {
  const name = decode(encodedName)
  if (name === undefined) {
    return bad('invalid-request', `path: found ${encodedName}, expected an encoded name`)
  }
  if (request.method === 'GET') return found(state, name)
  if (request.method === 'DELETE') {
    const before = state.resourceTag(name)
    // Without an object the answer is 404, whatever the client expects.
    const reason = before === undefined ? undefined : unmet(request.headers, before)
    if (reason !== undefined) return bad('precondition-failed', reason)
    return await answer(state, name, state.removeResource(name))
  }
  const body = await readJson(request)
  if (body.kind === 'bad') return bad(body.problem ?? 'invalid-request', body.reason)
  // Another request can have changed the resource while the body arrived. From here to the change, no other request is handled.
  const reason = unmet(request.headers, state.resourceTag(name))
  if (reason !== undefined) return bad('precondition-failed', reason)
  return await answer(state, name, state.setResource(name, body.value))
}

function found(state: AdminState, name: string): ResourceAnswer {
  const resource = state.findResource(name)
  return resource === undefined
    ? bad('unknown-resource', `no resource is named ${JSON.stringify(name)}`)
    : { kind: 'ok', value: resourceRow(resource), etag: state.resourceTag(name) }
}

async function answer(
  state: AdminState,
  name: string,
  outcome: ResourceOutcome,
): Promise<ResourceAnswer> {
  switch (outcome.kind) {
    case 'invalid':
      return invalid(outcome.reasons)
    case 'conflict':
      return conflict(outcome)
    case 'unknown':
      return bad('unknown-resource', outcome.reason)
    case 'ok': {
      const etag = state.resourceTag(name)
      const [inForce, kept] = await Promise.all([untilRealized(state), untilKept(outcome.kept)])
      const what = `${name}: accepted, `
      if (!inForce) return bad('unavailable', `${what}but not in force yet: the datapath is behind`)
      if (kept !== undefined)
        return bad('not-kept', `${what}in force, but not kept over restarts yet: ${kept}`)
      const { revision, refused } = state.core.committer
      const expires = outcome.expires === undefined ? null : formatTime(outcome.expires)
      const value = { name, changed: outcome.changed, expires, revision, refused }
      return { kind: 'ok', value, etag }
    }
  }
}

/** Waits until the datapath enforces all changes that were made. Returns false when WAIT_MS is over first. */
async function untilRealized({ clock, transition }: AdminState): Promise<boolean> {
  const until = clock.now() + WAIT_MS
  while (transition.pending) {
    if (clock.now() > until) return false
    await new Promise<void>((resolve) => void clock.after(LOOK_MS, resolve))
  }
  return true
}

/** Waits until the change is kept. Returns undefined on success, or the reason of the failure. */
async function untilKept(kept: Promise<void>): Promise<string | undefined> {
  try {
    await kept
    return undefined
  } catch (error) {
    return messageOf(error)
  }
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

function conflict({
  reason,
  position,
}: Extract<ResourceOutcome, { readonly kind: 'conflict' }>): ResourceAnswer {
  const faults = position === undefined ? undefined : [{ message: reason, ...position }]
  return { kind: 'bad', problem: { kind: 'conflict', detail: reason, faults } }
}

function invalid(reasons: readonly string[]): ResourceAnswer {
  const faults = reasons.map((message) => ({ message }))
  return { kind: 'bad', problem: { kind: 'invalid-request', detail: reasons.join('\n'), faults } }
}

function bad(kind: ProblemKind, detail: string): ResourceAnswer {
  return { kind: 'bad', problem: { kind, detail } }
}
