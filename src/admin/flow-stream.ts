// Writes flows as JSON lines: the flows of the ring, and for a reader that follows also each new flow. keptLines reads the flows that are
// kept on disk. A reader that follows looks at the ring every 50 ms, so following costs the packet path nothing.

import type { ServerResponse } from 'node:http'
import { SliceWriter } from './json-stream.ts'
import type { AdminState } from './state.ts'
import { flowView } from './views/flows.ts'

const LOOK_MS = 50

export interface FlowQuery {
  readonly follow: boolean
  /** A verdict or a kind. Undefined for all flows. */
  readonly filter: string | undefined
  /** The number of the first flow that is written. */
  readonly since: number
}

export async function writeFlows(
  response: ServerResponse,
  state: AdminState,
  { follow, filter, since }: FlowQuery,
): Promise<void> {
  const writer = new SliceWriter(response, state.clock)
  let next = since
  do {
    for (; next < state.flows.count; next++) {
      if (!writer.open) return
      // Flows that the ring overwrote because the reader was too slow are left out.
      next = Math.max(next, state.flows.oldest)
      const flow = flowView(state, next, filter)
      if (flow !== undefined) writer.add(`${JSON.stringify(flow)}\n`)
      await writer.breathe()
    }
    await writer.flush()
    if (follow) await new Promise<void>((resolve) => state.clock.after(LOOK_MS, resolve))
  } while (follow && writer.open)
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
