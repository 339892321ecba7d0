// `flatten` makes entries for a longest-match table from the ports of several rules. The table uses only the longest match, so a narrow
// allow would hide a broad deny. Therefore an allow inside a deny is left out, and an allow that overlaps a deny is split. For any
// (protocol, port) the longest match is the first of these actions that some rule has: deny, audit-deny, allow, audit. Without a rule there
// is no match. With `evaluate` (tiers.ts), ports for which no rule decides, inside of a
// wider entry, become a deny by no rule. `audit-deny` comes from a deny rule of an audited policy, and neither allows nor denies. If another rule allows or audits
// the same port, the result is `audit-pass` instead.

import { ANY_PROTOCOL, PORT_PROTOCOLS, type PortRange } from '../../core/protocol.ts'

/**
 * `audit`: lets packets pass, and reports them if no rule allows them. `audit-deny`: comes from a deny rule of an audited policy, and only
 * reports packets that another rule lets pass. `pass`: ends a tier (tiers.ts).
 */
export type Action = 'deny' | 'allow' | 'audit' | 'audit-deny' | 'pass'

/**
 * `audit-pass`: lets packets pass and always reports them, because a rule lets them pass and an audited policy would deny them. `weak-deny`:
 * denies packets that no entry of another key lets pass (tiers.ts).
 */
export type FlatAction = Exclude<Action, 'pass'> | 'audit-pass' | 'weak-deny'

/** Where a coverage stands in the order of evaluation. A rule without a tier has no turn (tiers.ts). */
export interface Turn {
  readonly tier: 'Admin' | 'Baseline' | 'default'
  readonly priority: number
  /** Two rules of one policy have one number here. */
  readonly policy: number
  /** The number of the rule in its policy. */
  readonly rule: number
}

/** One rule's action on a range of ports. */
export interface Coverage {
  readonly action: Action
  readonly range: PortRange
  /** The number of the rule, from CompileOptions.originOf. */
  readonly origin: number
  /** Where a rule of a tier stands in the order of evaluation. Absent for all other rules, which have no order. */
  readonly turn?: Turn
}

/** One entry. Protocol 0 means any protocol. Only the first `portBits` of the 16 bits of `port` are compared. */
export interface FlatEntry {
  readonly protocol: number
  readonly port: number
  readonly portBits: number
  readonly action: FlatAction
  /** The numbers of all rules that the entry was made from, ascending. */
  readonly origins: readonly number[]
}

interface Segment {
  readonly low: number
  high: number
  readonly action: FlatAction
  readonly origins: readonly number[]
}

const LAST_PORT = 65_535
const STRENGTH: readonly Exclude<Action, 'pass'>[] = ['deny', 'audit-deny', 'allow', 'audit']

/**
 * Returns the entries of one key of the policy map: one identity, one class, or any peer. `decide` says what coverages of one port decide
 * together; absent: `strongest`.
 */
export function flatten(
  coverages: readonly Coverage[],
  decide: Decide = strongest,
): readonly FlatEntry[] {
  const entries: FlatEntry[] = []
  const everyProtocol = coverages.filter(({ range }) => range.protocol === ANY_PROTOCOL)
  const base = decide(everyProtocol)
  if (base !== undefined) entries.push({ protocol: ANY_PROTOCOL, port: 0, portBits: 0, ...base })
  for (const protocol of PORT_PROTOCOLS) {
    const mine = coverages.filter(({ range }) => range.protocol === protocol)
    if (mine.length === 0) continue
    for (const segment of segmentsOf([...everyProtocol, ...mine], decide)) {
      if (segment.action === base?.action) continue
      if (base === undefined && segment.origins.length === 0) continue
      for (const { port, portBits } of portPrefixes(segment.low, segment.high)) {
        entries.push({ protocol, port, portBits, action: segment.action, origins: segment.origins })
      }
    }
  }
  return entries
}

/** Splits ports 0..65535 where a coverage begins or ends, and joins neighbours with the same action and origins. */
function segmentsOf(coverages: readonly Coverage[], decide: Decide): readonly Segment[] {
  const cuts = new Set<number>([0])
  for (const { range } of coverages) {
    cuts.add(range.low)
    if (range.high < LAST_PORT) cuts.add(range.high + 1)
  }
  const starts = [...cuts].sort((a, b) => a - b)
  const segments: Segment[] = []
  starts.forEach((low, i) => {
    const high = (starts[i + 1] ?? LAST_PORT + 1) - 1
    const covering = coverages.filter(({ range }) => range.low <= low && range.high >= high)
    const verdict = decide(covering) ?? UNDECIDED
    const last = segments.at(-1)
    if (last !== undefined && last.high === low - 1 && sameVerdict(last, verdict)) last.high = high
    else segments.push({ low, high, ...verdict })
  })
  return segments
}

/** What coverages of one port decide together. */
export interface Verdict {
  readonly action: FlatAction
  /** The numbers of the rules behind it, ascending. */
  readonly origins: readonly number[]
}

/** What no rule decides, inside of a wider entry that must not match it. Rules that `pass` are complete, so nothing else lets it pass. */
const UNDECIDED: Verdict = { action: 'deny', origins: [] }

type Decide = (coverages: readonly Coverage[]) => Verdict | undefined

/** Returns the first of the actions in their order of strength that some coverage has. Does not read turns. */
export function strongest(coverages: readonly Coverage[]): Verdict | undefined {
  for (const action of STRENGTH) {
    const found = coverages.filter((each) => each.action === action)
    if (found.length === 0) continue
    const origins = [...new Set(found.map(({ origin }) => origin))].sort((a, b) => a - b)
    const passes = action === 'audit-deny' && coverages.some(isPass)
    return { action: passes ? 'audit-pass' : action, origins }
  }
  return undefined
}

function isPass({ action }: Coverage): boolean {
  return action === 'allow' || action === 'audit'
}

function sameVerdict(a: Verdict, b: Verdict): boolean {
  if (a.action !== b.action || a.origins.length !== b.origins.length) return false
  return a.origins.every((origin, i) => origin === b.origins[i])
}

/** Returns the fewest port prefixes that cover exactly `low..high`. There are at most 30. */
export function portPrefixes(
  low: number,
  high: number,
): readonly { readonly port: number; readonly portBits: number }[] {
  const prefixes: { port: number; portBits: number }[] = []
  let port = low
  while (port <= high) {
    let bits = 16
    while (bits > 0) {
      const size = 2 ** (16 - bits + 1)
      if (port % size !== 0 || port + size - 1 > high) break
      bits--
    }
    prefixes.push({ port, portBits: bits })
    port += 2 ** (16 - bits)
  }
  return prefixes
}
