// InterceptChanges detects changes that can break interception in this network namespace. The kernel reports changes of
// namegate's nftables rules and of interfaces. The routing of TPROXY is read and compared, because the kernel does not report
// every lost route (for example, the routes of an interface that goes down). On a busy host the kernel would also report
// thousands of other programs' routes. One reading takes some ten system calls and starts no process.

import { loadConntrack, loadPosix } from '../native/native.ts'
import type { InterceptPlan } from './plan.ts'
import { TABLE } from './nft-script.ts'
import { LAST, PROTOCOL } from './routing.ts'

export interface InterceptChanges {
  /** Returns true if namegate's nftables rules or any interface changed since the last call. */
  hasChanged(): boolean
  /**
   * Returns true if routing rules or routes differ from the last call: namegate's own, and those that could take queries
   * elsewhere. The first call returns true.
   */
  hasRoutingChanged(): boolean
  /**
   * Returns true if any program made any nftables transaction since the last call. This call asks the kernel for a counter, so it
   * also works where events were lost. It returns true if the kernel does not report the counter.
   */
  hasGenerationChanged(): boolean
  /**
   * Calls `onChange` while there is a change that `hasChanged` reports. Returns false if the kernel does not report some changes.
   */
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

/** namegate's own routing takes some 600 octets. */
const ROUTING_OCTETS = 8192

export function openChanges(plan: InterceptPlan): InterceptChanges {
  const [conntrack, posix] = [loadConntrack(), loadPosix()]
  const [rules, links] = [conntrack.rulesWatch(), posix.linkSocket()]
  // The watches are kept here, because a garbage-collected watch reports nothing.
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
      const ofRules = rules >= 0 && conntrack.rulesChanged(rules, TABLE) !== 0
      const ofLinks = links < 0 ? [] : posix.linkDrain(links)
      return ofRules || typeof ofLinks === 'number' || ofLinks.length > 0
    },
    hasRoutingChanged: () => {
      const size = posix.routingRead(Number(PROTOCOL), table, mark, LAST, into)
      const now = into.subarray(0, Math.max(size, 0))
      // If a reading fails (no free descriptor), the next call reads again.
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
