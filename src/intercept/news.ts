// News of what interception stands on, in this network namespace: our rules of nftables and interfaces, of which the kernel
// tells, and the routing of TPROXY, which is read. The kernel does not tell of every route that goes (those of an interface
// that goes down, for one), and on a busy host it tells of thousands that are not ours. One reading takes some
// ten system calls and starts no process.

import { loadConntrack, loadPosix } from '../native/native.ts'
import type { InterceptPlan } from './plan.ts'
import { TABLE } from './nft-script.ts'
import { LAST, PROTOCOL } from './routing.ts'

export interface InterceptNews {
  /** Whether our rules of nftables or interfaces changed since the last call. */
  hasNews(): boolean
  /**
   * Whether rules or routes are others than at the last call, ours or such that could take queries elsewhere; true the
   * first time.
   */
  hasRoutingNews(): boolean
  /** Calls while there is news of the first kind; false when not all of it is heard that way. */
  listen(onNews: () => void): boolean
  stop(): void
}

export const NO_NEWS: InterceptNews = {
  hasNews: () => false,
  hasRoutingNews: () => false,
  listen: () => true,
  stop: () => undefined,
}

/** Ours take some 600 octets. */
const ROUTING_OCTETS = 8192

export function openNews(plan: InterceptPlan): InterceptNews {
  const [conntrack, posix] = [loadConntrack(), loadPosix()]
  const [rules, links] = [conntrack.rulesWatch(), posix.linkSocket()]
  // Held here, or they would be collected and hear nothing any more.
  let watches: readonly (object | number)[] = []
  let routing: Buffer | undefined
  const stop = (): void => {
    for (const watch of watches) if (typeof watch === 'object') posix.linkUnwatch(watch)
    watches = []
  }
  const into = new Uint8Array(ROUTING_OCTETS)
  const { table, mark } = plan
  return {
    hasNews: () => {
      const ofRules = rules >= 0 && conntrack.rulesNews(rules, TABLE) !== 0
      const ofLinks = links < 0 ? [] : posix.linkDrain(links)
      return ofRules || typeof ofLinks === 'number' || ofLinks.length > 0
    },
    hasRoutingNews: () => {
      const size = posix.routingRead(Number(PROTOCOL), table, mark, LAST, into)
      const now = into.subarray(0, Math.max(size, 0))
      // What cannot be read now (no descriptor left) is read the next time.
      if (size < 0 || routing?.equals(now) === true) return false
      routing = Buffer.from(now)
      return true
    },
    listen: (onNews) => {
      watches = [rules, links].map((fd) => (fd < 0 ? fd : posix.linkWatch(fd, onNews)))
      const hearsAll = watches.every((watch) => typeof watch === 'object')
      if (!hearsAll) stop()
      return hearsAll
    },
    stop,
  }
}
