// Reads the bodies of requests that change something: JSON of a known form. A refusal says which form was expected.

import type { IncomingMessage } from 'node:http'
import type { Mode } from '../datapath/entries.ts'
import { isJson } from './negotiation.ts'
import type { ProblemKind } from './problems.ts'
import type { AuditScope } from './state.ts'

const BODY_MAX = 65_536
/** A longer body is not read to its end, so its client can lose the connection before it has the answer. */
const READ_MAX = 16 * 1024 * 1024
const MODES: readonly Mode[] = ['enforce', 'audit', 'bypass']

export type Parsed<T> = { readonly kind: 'ok'; readonly value: T } | BadRequest

export interface BadRequest {
  readonly kind: 'bad'
  readonly reason: string
  /** Undefined: `invalid-request`. */
  readonly problem?: ProblemKind
}

/** Reads the body as JSON. The result is `bad` when the body is too long or is not JSON. */
export async function readJson(request: IncomingMessage): Promise<Parsed<unknown>> {
  const type = request.headers['content-type']
  if (!isJson(type)) {
    const reason = `content-type: found ${type ?? ''}, expected application/json`
    return { kind: 'bad', reason, problem: 'unsupported-media-type' }
  }
  const body = await readBody(request)
  if (body === undefined) {
    const reason = `body: expected at most ${BODY_MAX} octets`
    return { kind: 'bad', reason, problem: 'body-too-large' }
  }
  try {
    const value: unknown = JSON.parse(body.toString('utf8'))
    return { kind: 'ok', value }
  } catch {
    return bad('body: expected JSON')
  }
}

/** Reads the body. Returns undefined if it is longer than BODY_MAX octets. */
export async function readBody(request: IncomingMessage): Promise<Buffer | undefined> {
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of request) {
    if (!(chunk instanceof Uint8Array)) continue
    length += chunk.length
    if (length <= BODY_MAX) chunks.push(chunk)
    if (length > READ_MAX) break
  }
  return length > BODY_MAX ? undefined : Buffer.concat(chunks)
}

/** Reads `{"mode": "bypass"}`, or `{"mode": "pinned"}`, which a client sends after changing the mode in the pinned maps. */
export function parseMode(body: unknown): Parsed<Mode | 'pinned'> {
  const fields = fieldsOf(body, ['mode'])
  const wanted = fields?.get('mode')
  const mode = wanted === 'pinned' ? wanted : MODES.find((each) => each === wanted)
  if (mode === undefined)
    return bad('body: expected {"mode": "enforce" | "audit" | "bypass" | "pinned"}')
  return { kind: 'ok', value: mode }
}

export interface AuditRequest {
  readonly scope: AuditScope
  /** Undefined removes the setting that was made at run time. */
  readonly on: boolean | undefined
}

const AUDIT_FORM =
  'body: expected {"on": true | false} with {"scope": "node"}, {"scope": "endpoint", "name": TEXT} or {"scope": "selector", "matchLabels": {KEY: VALUE}}; {"on": null} takes that back, of {"scope": "all"} everything'

export function parseAudit(body: unknown): Parsed<AuditRequest> {
  const fields = fieldsOf(body, ['scope', 'on', 'name', 'matchLabels'])
  const on = fields?.get('on')
  const scope = fields === undefined ? undefined : scopeOf(fields)
  if (scope === undefined || (typeof on !== 'boolean' && on !== null)) return bad(AUDIT_FORM)
  if (scope.kind === 'all' && on !== null) return bad(AUDIT_FORM)
  return { kind: 'ok', value: { scope, on: on ?? undefined } }
}

function scopeOf(fields: ReadonlyMap<string, unknown>): AuditScope | undefined {
  const name = fields.get('name')
  const matchLabels = fields.get('matchLabels')
  const which = fields.get('scope')
  switch (which) {
    case 'node':
    case 'all':
      return name === undefined && matchLabels === undefined ? { kind: which } : undefined
    case 'endpoint':
      return typeof name === 'string' && matchLabels === undefined
        ? { kind: 'endpoint', name }
        : undefined
    case 'selector': {
      const labels = name === undefined ? textsOf(matchLabels) : undefined
      return labels === undefined
        ? undefined
        : { kind: 'selector', selector: { matchLabels: labels } }
    }
    default:
      return undefined
  }
}

/** The fields of an object. Undefined when the body is no object, or when the object has a field that is not in `known`. */
export function fieldsOf(
  body: unknown,
  known: readonly string[],
): ReadonlyMap<string, unknown> | undefined {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) return undefined
  const fields = new Map<string, unknown>(Object.entries(body))
  return [...fields.keys()].every((key) => known.includes(key)) ? fields : undefined
}

/** Reads an object whose values are texts. Undefined for an empty object and for any other value. */
function textsOf(value: unknown): ReadonlyMap<string, string> | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
  const texts = new Map<string, string>()
  for (const [key, text] of Object.entries(value)) {
    if (typeof text !== 'string') return undefined
    texts.set(key, text)
  }
  return texts.size === 0 ? undefined : texts
}

function bad(reason: string): BadRequest {
  return { kind: 'bad', reason }
}
