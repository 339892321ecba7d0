// Tells a kind that the cluster does not have from a right that is missing. The server answers 403 in both cases if the rights do not cover
// the kind, but its discovery document is for everyone.

import { isMapping } from '../../documents/source-document.ts'
import type { ApiAnswer, ApiLoss, ApiPort, ApiRequest } from '../connection/api-port.ts'
import type { ApiStatus } from '../connection/api-status.ts'
import { describeRule, groupPath, type Target } from './collections.ts'

/** What is missing: the kind, or a right. `reason` is a sentence without a full stop. */
export interface Missing {
  readonly state: 'absent' | 'forbidden'
  readonly reason: string
}

export type Verb = 'list' | 'watch'

/** Finds what is missing after the server answered 403 or 404 to `verb`. Calls `done` with undefined if no answer came that can be read. */
export function findMissing(
  api: ApiPort,
  target: Target,
  { code }: ApiStatus,
  verb: Verb,
  done: (missing: Missing | undefined) => void,
): ApiRequest {
  return api.get(groupPath(target.collection), (end) => {
    const isServed = readServed(end, target)
    if (isServed === undefined) return done(undefined)
    const { kind, apiVersion } = target.collection
    done(
      isServed && code === 403
        ? { state: 'forbidden', reason: `a right is missing: add ${describeRule(target, verb)}` }
        : {
            state: 'absent',
            reason: `the cluster does not have the kind ${kind} of ${apiVersion}`,
          },
    )
  })
}

/** True if the server has the kind, or does not tell. Undefined if there is no answer. */
function readServed(end: ApiAnswer | ApiLoss, { collection }: Target): boolean | undefined {
  if (end.kind !== 'answer') return undefined
  if (end.code === 404) return false
  if (end.code === 401 || end.code === 403) return true
  const resources = isMapping(end.body) ? end.body['resources'] : undefined
  if (end.code !== 200 || !Array.isArray(resources)) return undefined
  return resources.some((each: unknown) => isMapping(each) && each['name'] === collection.resource)
}
