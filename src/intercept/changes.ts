// Changes of what interception stands on, in this network namespace: our nftables rules and interfaces, which the kernel
// reports, and the routing of TPROXY, which is read. The kernel does not report every route that goes (those of an interface
// that goes down, for one), and on a busy host it reports thousands of routes of others. One reading takes some ten system
// calls and starts no process.

import { loadConntrack, loadPosix } from '../native/native.ts'
import type { InterceptPlan } from './plan.ts'
import { TABLE } from './nft-script.ts'
import { LAST, PROTOCOL } from './routing.ts'

export interface InterceptChanges {
  /** Whether our rules of nftables or interfaces changed since the last call. */
  hasChanged(): boolean
  /**
   * Whether routing rules or routes differ from the last call: ours, and those that could take queries elsewhere. True the
   * first time.
   */
  hasRoutingChanged(): boolean
  /**
   * Whether there was a transaction of nftables since the last call, by anyone and of any table. It is asked of the kernel, so
   * it holds where events are lost. True where the kernel does not say.
   */
  hasGenerationChanged(): boolean
  /** Calls `onChange` while there is a change that `hasChanged` reports; false when some changes cannot be heard. */
  listen(onChange: () => void): boolean
  stop(): void
}

export const NO_CHANGES: InterceptChanges = {
  hasChanged: () => false,
  hasRoutingChanged: () => false,
  hasGenerationChanged: () => false,
  listen: () => true,
  stop: () => undefined,
}

/** Ours take some 600 octets. */
const ROUTING_OCTETS = 8192

export function openChanges(plan: InterceptPlan): InterceptChanges {
  const [conntrack, posix] = [loadConntrack(), loadPosix()]
  const [rules, links] = [conntrack.rulesWatch(), posix.linkSocket()]
  // Held here, because a watch that is garbage-collected hears nothing more.
  let watches: readonly (object | number)[] = []
  let routing: Buffer | undefined
  let generation = -1
  const stop = (): void => {
    for (const watch of watches) if (typeof watch === 'object') posix.linkUnwatch(watch)
    watches = []
  }
  const into = new Uint8Array(ROUTING_OCTETS)
  const { table, mark } = plan
  return {
    hasChanged: () => {
      const ofRules = rules >= 0 && conntrack.rulesNews(rules, TABLE) !== 0
      const ofLinks = links < 0 ? [] : posix.linkDrain(links)
      return ofRules || typeof ofLinks === 'number' || ofLinks.length > 0
    },
    hasRoutingChanged: () => {
      const size = posix.routingRead(Number(PROTOCOL), table, mark, LAST, into)
      const now = into.subarray(0, Math.max(size, 0))
      // A reading that fails (no descriptor left) is repeated at the next call.
      if (size < 0 || routing?.equals(now) === true) return false
      routing = Buffer.from(now)
      return true
    },
    hasGenerationChanged: () => {
      const [before, now] = [generation, conntrack.rulesGeneration()]
      generation = now
      return now < 0 || now !== before
    },
    listen: (onChange) => {
      watches = [rules, links].map((fd) => (fd < 0 ? fd : posix.linkWatch(fd, onChange)))
      const hearsAll = watches.every((watch) => typeof watch === 'object')
      if (!hearsAll) stop()
      return hearsAll
    },
    stop,
  }
}
