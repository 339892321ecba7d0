// Tells a kind that the cluster does not have from a kind that the rights do not cover. The server answers 403 in both cases if the rights
// do not cover it, but its discovery document is for everyone.

import { isMapping } from '../documents/source-document.ts'
import type { ApiAnswer, ApiLoss, ApiPort, ApiRequest } from './api-port.ts'
import type { ApiStatus } from './api-status.ts'
import { describeRule, groupOf, groupPath, type Target } from './collections.ts'

/** `unknown`: the discovery document was refused. `lost`: no answer came that can be read. */
export type Presence = 'served' | 'absent' | 'unknown' | 'lost'

/** What is missing: the kind, or a right. `reason` is a sentence without a full stop. */
export interface Missing {
  readonly state: 'absent' | 'forbidden'
  readonly reason: string
}

/** Looks if the server has the resource of the target. Kinds of the core group are always there. */
export function discover(
  api: ApiPort,
  target: Target,
  done: (found: Presence) => void,
): ApiRequest {
  return api.get(groupPath(target.collection), (end) => done(presenceOf(end, target)))
}

export function isAlwaysServed({ collection }: Target): boolean {
  return groupOf(collection) === ''
}

/** Says what is missing after the server answered 403 or 404 to a list or watch. */
export function describeMissing(
  found: Presence,
  { code }: ApiStatus,
  target: Target,
  verb: 'list' | 'watch',
): Missing {
  const { kind, apiVersion } = target.collection
  return found === 'absent' || code === 404
    ? { state: 'absent', reason: `the cluster does not have the kind ${kind} of ${apiVersion}` }
    : { state: 'forbidden', reason: `a right is missing: add ${describeRule(target, verb)}` }
}

function presenceOf(end: ApiAnswer | ApiLoss, { collection }: Target): Presence {
  if (end.kind !== 'answer') return 'lost'
  if (end.code === 404) return 'absent'
  if (end.code === 401 || end.code === 403) return 'unknown'
  const resources = isMapping(end.body) ? end.body['resources'] : undefined
  if (end.code !== 200 || !Array.isArray(resources)) return 'lost'
  const isServed = resources.some(
    (each: unknown) => isMapping(each) && each['name'] === collection.resource,
  )
  return isServed ? 'served' : 'absent'
}
