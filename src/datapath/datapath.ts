// This file declares the interface of a datapath. Wanted state arrives in one commit after another. Only one commit is under way at a
// time. An adapter applies a commit at once (memory, eBPF) or soon (nftables), and names every entry that the kernel refused. L2: no I/O.
//
// A datapath decides on a packet that an endpoint sends by the first step that applies. eBPF, nftables and the packet model of the tests
// follow these steps, and the contract suite checks them:
//   1. Mode bypass: pass. Neighbour discovery and ARP: pass. A malformed packet: drop and count it.
//   2. The source is not an address of the endpoint: drop and count it.
//   3. The packet goes to one of namegate's own listeners (`setListeners`): pass.
//   4. DNS to a unicast address comes in by an interface on which DNS of this address family is intercepted (`setIntercepted`): pass.
//      Steps 3 and 4 skip packets with IPv4 options or IPv6 extension headers, and fragments.
//   5. A reply in a connection that the peer began: pass.
//   6. Look up the policy of three keys: the destination's identity, the destination's class, and identity 0. For each key, the entry
//      with the longest match on (protocol, port) decides. Identity and class are those of the longest prefix around the destination.
//      A scoped endpoint uses the prefixes of its own scope first, then those of the node.
//      If any of the three says deny: deny, and go on with step 7. Else, if any of them says allow, audit or audit-pass: pass. Report
//      the packet if there is an audit-deny or audit-pass, or if there is no allow. Else, if one says weak-deny and the others say
//      nothing or weak-deny too: deny, and go on with step 7.
//   7. The connection is older than the endpoint's enforcement and was adopted (`adopt`): pass.
//   8. Else drop. But if the mode is audit, or the endpoint has its audit flag or lacks its enforcing flag: pass. In the first two cases
//      report the packet as `audit`.

import type {
  ExceptionControl,
  FenceControl,
  FlowAdoption,
  HookControl,
  ModeSwitch,
  PacketReports,
  PeerTable,
} from './abilities.ts'
import type { Changes, CommitResult, DatapathDump, DatapathKind } from './entries.ts'
import type { Repair } from './repair.ts'

/** A datapath. Its abilities (abilities.ts, repair.ts) exist from `start` to `stop`. */
export interface Datapath {
  readonly kind: DatapathKind
  /** Begins to read the state in force, so that `start` is faster. No other process writes that state after this call. */
  readAhead(): void
  /** Takes over the state in force, or starts empty. Returns the state. Throws UnavailableError with the remedy. */
  start(): DatapathDump
  /**
   * Applies one commit. Returns the refused entries if the commit has been applied. Returns undefined if the datapath is still applying
   * it. Then `onCommitted` reports the end, and the caller makes no other commit before. When this method returns, `changes` has been
   * read completely and can be reused. An entry that is in force already is no error.
   */
  commit(changes: Changes): CommitResult | undefined
  /**
   * Calls `listener` once for each commit that returned undefined, when the commit has been applied. Calls it from the event loop, never
   * inside `commit` and never after `stop`. Takes one listener, set once.
   */
  onCommitted(listener: (result: CommitResult) => void): void
  /** Reads back the state in force. */
  dump(): DatapathDump
  /** Like `dump`, but pauses at each `yield`, and commits can happen during a pause. */
  dumpInSlices(): Generator<undefined, DatapathDump>
  /** Ends the use of the datapath. With `leaveEnforcing` the kernel goes on enforcing the state in force. */
  stop(options: { readonly leaveEnforcing: boolean }): void

  readonly mode: ModeSwitch
  readonly hooks: HookControl
  readonly fences: FenceControl
  readonly exceptions: ExceptionControl
  readonly adoption: FlowAdoption
  readonly peers: PeerTable
  readonly reports: PacketReports
  readonly repair: Repair
}
