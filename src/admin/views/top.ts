// Counts the flows of a recent time: by verdict, by name, by endpoint, and equal refusals. The count reads the ring's columns,
// and formats only the rows that it shows. It pauses for the event loop. Its memory is bound by the size of the ring.

import { formatName, NAME_OCTETS_MAX } from '../../core/name.ts'
import { FLOW_KEY_WORDS } from '../../flows/record/flow-ring.ts'
import type { FlowVerdict } from '../document/flow-shapes.ts'
import type { TopShape } from '../document/top-shapes.ts'
import { endpointOfFlow } from '../flows/flow-endpoint.ts'
import type { AdminState } from '../state.ts'
import { flowView, verdictOf } from './flows.ts'
import { formatTime } from './rows.ts'

export interface TopQuery {
  readonly windowMs: number
  /** How many rows each list has at most. */
  readonly rows: number
}

/** How long one slice takes, in milliseconds, and after how many flows the clock is read. */
const SLICE_MS = 2
const FLOWS_PER_LOOK = 256

interface Count {
  all: number
  refused: number
}

interface Refusal {
  count: number
  /** Number of the latest of these flows. */
  last: number
}

export async function topView(state: AdminState, query: TopQuery): Promise<TopShape> {
  const { clock, flows } = state
  const now = clock.wall()
  const tally = new Tally(state)
  const from = now - query.windowMs
  let until = clock.now() + SLICE_MS
  let first = now
  for (let number = flows.count - 1; number >= flows.oldest; number--) {
    const time = flows.timeOf(number)
    if (time < from) break
    first = time
    tally.add(number)
    if (number % FLOWS_PER_LOOK !== 0 || clock.now() < until) continue
    await new Promise<void>((resolve) => clock.soon(resolve))
    until = clock.now() + SLICE_MS
  }
  const isCut = flows.oldest > 0 && first > from && tally.flows >= flows.count - flows.oldest
  return {
    time: formatTime(now),
    seconds: (isCut ? now - first : query.windowMs) / 1000,
    ...tally.show(query.rows),
  }
}

/** Counts flows, newest first. */
class Tally {
  flows = 0
  readonly #state: AdminState
  readonly #verdicts: Record<FlowVerdict, number> = {
    allow: 0,
    deny: 0,
    audit: 0,
    error: 0,
    event: 0,
  }
  /** Names in wire form, with one character for each octet. */
  readonly #names = new Map<string, Count>()
  readonly #endpoints = new Map<number, Count>()
  readonly #refusals = new Map<string, Refusal>()
  readonly #key = new Uint32Array(FLOW_KEY_WORDS)
  readonly #keyOctets = Buffer.from(this.#key.buffer)
  readonly #name = Buffer.alloc(NAME_OCTETS_MAX)

  constructor(state: AdminState) {
    this.#state = state
  }

  add(number: number): void {
    const { flows } = this.#state
    const kind = flows.kindOf(number)
    const verdict = verdictOf(kind)
    const isRefused = verdict === 'deny' || verdict === 'audit'
    this.flows++
    this.#verdicts[verdict]++
    count(this.#endpoints, flows.endpointOf(number), isRefused)
    const length = flows.copyName(number, this.#name)
    const name = this.#name.toString('latin1', 0, length)
    const isPacket = kind === 'drop' || kind === 'audit'
    if (length > 0 && !isPacket) count(this.#names, name, isRefused)
    if (!isRefused) return
    flows.writeKey(number, this.#key)
    const key = this.#keyOctets.toString('latin1') + name
    const known = this.#refusals.get(key)
    if (known === undefined) this.#refusals.set(key, { count: 1, last: number })
    else known.count++
  }

  show(rows: number): Omit<TopShape, 'time' | 'seconds'> {
    return {
      flows: this.flows,
      verdicts: this.#verdicts,
      names: most(this.#names, rows).map(([name, { all, refused }]) => ({
        name: formatName(Buffer.from(name, 'latin1')),
        flows: all,
        refused,
      })),
      endpoints: most(this.#byName(), rows).map(([endpoint, { all, refused }]) => ({
        endpoint,
        flows: all,
        refused,
      })),
      refusals: [...this.#refusals.values()]
        .filter(({ last }) => last >= this.#state.flows.oldest)
        .sort((a, b) => b.count - a.count || b.last - a.last)
        .slice(0, rows)
        .map((refusal) => refusalRow(this.#state, refusal)),
    }
  }

  /** The counts of endpoints by name. An endpoint that was made again has a new number and the same name. */
  #byName(): ReadonlyMap<string | null, Count> {
    const counts = new Map<string | null, Count>()
    for (const [id, { all, refused }] of this.#endpoints) {
      const name = endpointOfFlow(this.#state, id)?.name ?? null
      const known = counts.get(name) ?? { all: 0, refused: 0 }
      counts.set(name, { all: known.all + all, refused: known.refused + refused })
    }
    return counts
  }
}

function count<Key>(counts: Map<Key, Count>, key: Key, isRefused: boolean): void {
  const known = counts.get(key)
  if (known === undefined) {
    counts.set(key, { all: 1, refused: isRefused ? 1 : 0 })
    return
  }
  known.all++
  if (isRefused) known.refused++
}

function most<Key>(
  counts: ReadonlyMap<Key, Count>,
  rows: number,
): readonly (readonly [Key, Count])[] {
  return [...counts].sort(([, a], [, b]) => b.all - a.all).slice(0, rows)
}

function refusalRow(
  state: AdminState,
  { count: times, last }: Refusal,
): TopShape['refusals'][number] {
  const flow = flowView(state, last, undefined)
  const base = { count: times, last: formatTime(state.flows.timeOf(last)) }
  if (flow === undefined || !('rules' in flow)) {
    return { ...base, endpoint: null, what: '', names: [], reason: null, rules: [] }
  }
  const { endpoint, rules, reason } = flow
  if (!('peer' in flow)) {
    const what = `${flow.type} ${flow.name ?? ''}`
    return { ...base, endpoint, what, names: [], reason: reason ?? flow.kind, rules }
  }
  const { protocol, peer, port, names } = flow
  const to = peer.includes(':') ? `[${peer}]` : peer
  return { ...base, endpoint, what: `${protocol} ${to}:${port}`, names, reason, rules }
}
