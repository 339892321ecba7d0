// Writes flows as JSON lines: the flows of the ring that a filter accepts, and for a reader that follows also each new flow. keptLines
// reads the flows that are kept on disk. The filter reads the ring itself, and a line is made only for an accepted flow. A reader that
// follows looks at the ring every 50 ms, so following costs the packet path nothing.

import type { ServerResponse } from 'node:http'
import type { FlowFilter } from './flow-filter.ts'
import { RingFacts } from './flow-facts.ts'
import { SliceWriter } from '../json-stream.ts'
import type { AdminState } from '../state.ts'
import { flowView } from '../views/flows.ts'

const LOOK_MS = 50
/** How many flows the filter looks at between two pauses. */
const FLOWS_PER_PAUSE = 256

export interface FlowQuery {
  readonly follow: boolean
  readonly filter: FlowFilter
  /** Only the last flows that the filter accepts, at most this number, are written. Undefined: all. */
  readonly last: number | undefined
  /** Only flows from this wall-clock time on are written, in milliseconds. */
  readonly from: number
}

export async function writeFlows(
  response: ServerResponse,
  state: AdminState,
  query: FlowQuery,
): Promise<void> {
  const writer = new SliceWriter(response, state.clock)
  const { flows } = state
  const facts = new RingFacts(state)
  let next = query.last === undefined ? 0 : await firstOfLast(writer, state, query)
  do {
    while (next < flows.count) {
      if (!writer.open) return
      // Flows that the ring overwrote because the reader was too slow are left out.
      next = Math.max(next, flows.oldest)
      const end = Math.min(flows.count, next + FLOWS_PER_PAUSE)
      while (next < end && !isAccepted(flows, facts, query, next)) next++
      if (next < end) writer.add(`${JSON.stringify(flowView(state, next++, undefined))}\n`)
      await writer.breathe()
    }
    await writer.flush()
    if (query.follow) await new Promise<void>((resolve) => state.clock.after(LOOK_MS, resolve))
  } while (query.follow && writer.open)
}

function isAccepted(
  flows: AdminState['flows'],
  facts: RingFacts,
  { filter, from }: FlowQuery,
  number: number,
): boolean {
  facts.number = number
  return flows.timeOf(number) >= from && filter.accepts(facts)
}

/** Returns the number of the first of the last `last` flows that the filter accepts, or the next number if it accepts none. */
async function firstOfLast(
  writer: SliceWriter,
  state: AdminState,
  query: FlowQuery,
): Promise<number> {
  const { flows } = state
  const facts = new RingFacts(state)
  let found = flows.count
  let left = query.last ?? 0
  for (let number = flows.count - 1; left > 0 && number >= flows.oldest; number--) {
    if (isAccepted(flows, facts, query, number)) {
      found = number
      left--
    }
    if (number % FLOWS_PER_PAUSE === 0) await writer.breathe()
    if (!writer.open) return flows.count
  }
  return found
}

/** Position of the time in a line on disk: `{"time":"2026-01-02T03:04:05.678Z",...`. */
const TIME_AT = '{"time":"'.length
const TIME_LENGTH = 24

/** Yields the lines on disk. With `older`, only lines of flows that began before the oldest flow in the ring. */
export async function* keptLines(
  { keptFlows, flows, clock }: AdminState,
  older: boolean,
): AsyncIterable<string> {
  const { oldest, count } = flows
  const began = oldest === count ? clock.wall() : flows.timeOf(oldest)
  const until = new Date(began).toISOString()
  for await (const lines of keptFlows?.read() ?? []) {
    if (older) yield lines.split('\n').filter(isOlder).join('\n')
    else yield lines
  }
  function isOlder(line: string): boolean {
    return line === '' || line.slice(TIME_AT, TIME_AT + TIME_LENGTH) < until
  }
}
