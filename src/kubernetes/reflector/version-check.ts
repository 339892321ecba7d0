// Asks for the version of a collection, without its objects. A watch that brought nothing for minutes is no proof: a watch from the future of
// a restored server is silent too, and Kubernetes 1.20 sends no bookmarks about a kind that does not change.

import type { ApiPort, ApiRequest } from '../connection/api-port.ts'
import type { Target } from './collections.ts'
import type { KnownVersion } from './known-version.ts'
import { readPage } from './list-page.ts'
import { listPath } from './requests.ts'

/**
 * `current`: the newest state is not older than what is known. `behind`: it is older. `open`: the answer does not tell, because it came from
 * the cache or is no list. `lost`: there is no answer.
 */
export type Checked = 'current' | 'behind' | 'open' | 'lost'

/** Compares the version of the server with the known one. */
export function checkVersion(
  api: ApiPort,
  target: Target,
  known: KnownVersion,
  done: (found: Checked) => void,
): ApiRequest {
  // The newest pods of one node would cost an old server a read of all pods, and the cached ones are few.
  const isCached = target.collection.nodes === 'this'
  const path = listPath(target, { kind: isCached ? 'any' : 'latest' }, 1, undefined)
  return api.get(path, (end) => {
    if (end.kind !== 'answer') return done('lost')
    const page = end.code === 200 ? readPage(end.body) : undefined
    if (page === undefined) return done('open')
    if (known.isAhead(page.version)) return done('behind')
    done(isCached ? 'open' : 'current')
  })
}
