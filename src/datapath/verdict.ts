// This file turns entries of a policy map into a verdict (step 6 in the header of datapath.ts). For one key, the entry with the longest
// match on (protocol, port) decides. Among the keys, the strongest verdict decides. `explain` and the reports of nftables use this file.
// The kernel programs implement the same steps, and the contract suite compares the results.

import type { PolicyKey, PolicyVerdict } from './entries.ts'

/** Protocol and ports of an entry. */
export type PortKey = Pick<PolicyKey, 'protocol' | 'port' | 'portBits'>

/** The verdict over all keys. */
export interface Outcome {
  /** `none`: no entry allows or denies. `audit`: the packet passes and is reported. */
  readonly verdict: 'allow' | 'deny' | 'audit' | 'none'
  /** The verdict of the key that decided. */
  readonly by: PolicyVerdict | 'none'
}

/** The strongest verdict first. `audit-deny` decides only if another key lets the packet pass. `weak-deny` is a deny. */
const STRENGTH = ['deny', 'audit-pass', 'audit-deny', 'allow', 'audit', 'weak-deny'] as const

/** Combines the verdicts of several keys, given in any order. */
export function outcomeOf(answers: readonly (PolicyVerdict | 'none')[]): Outcome {
  const passes = answers.some(
    (each) => each === 'allow' || each === 'audit' || each === 'audit-pass',
  )
  const by = STRENGTH.find((each) => answers.includes(each))
  if (by === undefined || (by === 'audit-deny' && !passes)) return { verdict: 'none', by: 'none' }
  if (by === 'weak-deny') return { verdict: 'deny', by }
  return { verdict: by === 'deny' || by === 'allow' ? by : 'audit', by }
}

/** Returns how specific an entry is. The order from most to least: an exact port, a port prefix, any port of a protocol, any protocol. */
export function specificity({ protocol, portBits }: PortKey): number {
  return protocol === 0 ? 0 : 1 + portBits
}

/** True if an entry matches the port. Undefined is a fragment without ports, which only entries for all ports match. */
export function covers(entry: PortKey, protocol: number, port: number | undefined): boolean {
  if (entry.protocol === 0) return true
  if (entry.protocol !== protocol) return false
  if (port === undefined) return entry.portBits === 0
  return (entry.port ^ port) >> (16 - entry.portBits) === 0
}

/** Returns the entry that decides among the entries of one key; undefined if none matches. */
export function longestMatch<Entry extends PortKey>(
  entries: readonly Entry[],
  protocol: number,
  port: number | undefined,
): Entry | undefined {
  let best: Entry | undefined
  for (const entry of entries) {
    if (!covers(entry, protocol, port)) continue
    if (best === undefined || specificity(entry) > specificity(best)) best = entry
  }
  return best
}
