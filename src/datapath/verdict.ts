// How entries of a policy map become a verdict (step 6 in the header of datapath.ts): the longest match on (protocol, port) decides for one key,
// the strongest answer decides among the keys. `explain` and the reports of nftables use this. The kernel programs implement the same, and
// the contract suite compares them.

import type { PolicyKey, PolicyVerdict } from './entries.ts'

/** Protocol and ports of an entry. */
export type PortKey = Pick<PolicyKey, 'protocol' | 'port' | 'portBits'>

/** The outcome of all keys' answers. */
export interface Outcome {
  /** `none`: no rule speaks of it; `audit` passes and is reported. */
  readonly verdict: 'allow' | 'deny' | 'audit' | 'none'
  /** The answer that decided. */
  readonly by: PolicyVerdict | 'none'
}

/** The strongest first; what audited rules deny counts only where something lets pass. */
const STRENGTH = ['deny', 'audit-pass', 'audit-deny', 'allow', 'audit'] as const

/** The outcome of several answers, in any order. */
export function outcomeOf(answers: readonly (PolicyVerdict | 'none')[]): Outcome {
  const passes = answers.some(
    (each) => each === 'allow' || each === 'audit' || each === 'audit-pass',
  )
  const by = STRENGTH.find((each) => answers.includes(each) && (passes || each !== 'audit-deny'))
  if (by === undefined) return { verdict: 'none', by: 'none' }
  return { verdict: by === 'deny' || by === 'allow' ? by : 'audit', by }
}

/** How specific an entry is: an exact port before a wider port prefix before any port before any protocol. */
export function specificity({ protocol, portBits }: PortKey): number {
  return protocol === 0 ? 0 : 1 + portBits
}

/** Whether an entry speaks of the port; undefined is a fragment without ports, of which only whole protocols speak. */
export function covers(entry: PortKey, protocol: number, port: number | undefined): boolean {
  if (entry.protocol === 0) return true
  if (entry.protocol !== protocol) return false
  if (port === undefined) return entry.portBits === 0
  return (entry.port ^ port) >> (16 - entry.portBits) === 0
}

/** The entry of one key that decides. */
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
