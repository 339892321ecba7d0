// The port to what enforces. Desired state arrives in one commit after another, never two under way at once. An adapter makes each
// commit real, at once (memory, eBPF) or soon (nftables), and names every entry that its kernel refused. L2: no I/O here.
//
// The verdict on a packet that an endpoint sends (eBPF, nftables and the tests' packet model follow it, and the contract suite
// checks it):
//   1. mode bypass: pass. Neighbour discovery and ARP pass. Malformed: drop, counted.
//   2. source not among the endpoint's: drop, counted.
//   3. to one of namegate's own listeners (`listeners`): pass.
//   4. DNS to one address, of a family that is intercepted on its interface (`setIntercepted`), where the packet comes in: pass.
//      Steps 3 and 4 hold for packets without IPv4 options, IPv6 extension headers and fragments; all others are judged.
//   5. a reply in a connection that the peer began: pass.
//   6. look up three keys, each by longest match on (protocol, port): the destination's identity, its
//      class, identity 0. Both come from the longest prefix around it, of a scoped endpoint first of all in
//      the endpoint's own scope, else in the node's. Any deny: deny. Else, where any of them lets pass (allow, audit,
//      audit-pass): pass, and report it unless there is an allow and neither audit-deny nor audit-pass.
//   7. a flow that is older than the endpoint's enforcement and was adopted (`adopt`): pass.
//   8. else drop; or, when the mode, the endpoint's audit flag or its absent enforcing flag says so, pass
//      (the first two are reported as `audit`).

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

/**
 * The port. The core is what every user of a datapath needs; the abilities (abilities.ts, repair.ts) exist from `start` to `stop`.
 */
export interface Datapath {
  readonly kind: DatapathKind
  /** Begins to read what is in force, so that `start` finds it read. No other process writes it from then on. */
  readAhead(): void
  /** Takes over what is in force already, or starts empty. Throws UnavailableError with the remedy. */
  start(): DatapathDump
  /**
   * Applies one commit. Returns what was refused when the commit has been applied. Returns undefined when the commit was taken and is
   * being applied: `onCommitted` reports its end, and until then the caller commits nothing else. Everything needed of `changes` has
   * been read when this returns. Equal entries already in force are not errors.
   */
  commit(changes: Changes): CommitResult | undefined
  /** Calls `listener` from the event loop once for each commit that returned undefined, when it has been applied. Never calls it inside
   *  `commit`, nor after `stop`. One listener, set once. */
  onCommitted(listener: (result: CommitResult) => void): void
  dump(): DatapathDump
  /** The same with a pause wherever it yields, while commits go on. */
  dumpInSlices(): Generator<undefined, DatapathDump>
  /** Lets go. With `leaveEnforcing` the kernel goes on enforcing what is in force. */
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
