// What several rules say about ports, made into entries for a longest-match table. The table sees only
// its longest match, so a narrow allow would hide a broad deny: an allow inside a deny is left out, one
// that overlaps is split. Result: for any (protocol, port) the longest match is deny if any rule denies,
// else allow if any allows, else audit if any audits, else there is no match. What a rule of an audited policy denies
// (`audit-deny`) it neither takes away nor gives: where something lets pass beside it the result is `audit-pass`.

import { ANY_PROTOCOL, PORT_PROTOCOLS, type PortRange } from '../../core/protocol.ts'

/** `audit` lets pass and reports where nothing allows; `audit-deny` is what an audited policy's deny rule says. */
export type Action = 'deny' | 'allow' | 'audit' | 'audit-deny'

/** `audit-pass`: lets pass and reports, whatever allows. */
export type FlatAction = Action | 'audit-pass'

/** What one rule says about a range of ports. */
export interface Coverage {
  readonly action: Action
  readonly range: PortRange
  /** Index of the rule it came from. */
  readonly origin: number
}

/** One entry: protocol 0 stands for any protocol, `portBits` leading bits of `port` count. */
export interface FlatEntry {
  readonly protocol: number
  readonly port: number
  readonly portBits: number
  readonly action: FlatAction
  /** Every rule that the entry came from, ascending. */
  readonly origins: readonly number[]
}

interface Segment {
  readonly low: number
  high: number
  readonly action: FlatAction
  readonly origins: readonly number[]
}

const LAST_PORT = 65_535
const STRENGTH: readonly Action[] = ['deny', 'audit-deny', 'allow', 'audit']

/** Flattens coverages of one level (one identity, one class, or any peer). */
export function flatten(coverages: readonly Coverage[]): readonly FlatEntry[] {
  const entries: FlatEntry[] = []
  const everyProtocol = coverages.filter(({ range }) => range.protocol === ANY_PROTOCOL)
  const base = strongest(everyProtocol)
  if (base !== undefined) entries.push({ protocol: ANY_PROTOCOL, port: 0, portBits: 0, ...base })
  for (const protocol of PORT_PROTOCOLS) {
    const mine = coverages.filter(({ range }) => range.protocol === protocol)
    if (mine.length === 0) continue
    for (const segment of segmentsOf([...everyProtocol, ...mine])) {
      if (segment.action === base?.action) continue
      for (const { port, portBits } of portPrefixes(segment.low, segment.high)) {
        entries.push({ protocol, port, portBits, action: segment.action, origins: segment.origins })
      }
    }
  }
  return entries
}

/** Cuts 0..65535 where a coverage begins or ends and joins neighbours that say the same. */
function segmentsOf(coverages: readonly Coverage[]): readonly Segment[] {
  const cuts = new Set<number>([0])
  for (const { range } of coverages) {
    cuts.add(range.low)
    if (range.high < LAST_PORT) cuts.add(range.high + 1)
  }
  const starts = [...cuts].sort((a, b) => a - b)
  const segments: Segment[] = []
  starts.forEach((low, i) => {
    const high = (starts[i + 1] ?? LAST_PORT + 1) - 1
    const verdict = strongest(
      coverages.filter(({ range }) => range.low <= low && range.high >= high),
    )
    if (verdict === undefined) return
    const last = segments.at(-1)
    if (last !== undefined && last.high === low - 1 && sameVerdict(last, verdict)) last.high = high
    else segments.push({ low, high, ...verdict })
  })
  return segments
}

interface Verdict {
  readonly action: FlatAction
  readonly origins: readonly number[]
}

function strongest(coverages: readonly Coverage[]): Verdict | undefined {
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

/** The fewest port prefixes that cover `low..high` exactly; at most 30. */
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
