// Flows as JSON lines: those of the ring, then those that come for a reader that follows; and those kept on disk. Adding a flow calls
// no listener, so it costs the packet path nothing; a reader that follows looks every 50 ms.

import type { ServerResponse } from 'node:http'
import { SliceWriter } from './json-stream.ts'
import type { AdminState } from './state.ts'
import { flowView } from './views/flows.ts'

const LOOK_MS = 50

export interface FlowQuery {
  readonly follow: boolean
  /** A verdict or kind. */
  readonly filter: string | undefined
  /** The first flow wanted; older ones are left out. */
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
      // What the ring lost meanwhile, because the reader was too slow, is left out.
      next = Math.max(next, state.flows.oldest)
      const flow = flowView(state, next, filter)
      if (flow !== undefined) writer.add(`${JSON.stringify(flow)}\n`)
      await writer.breathe()
    }
    await writer.flush()
    if (follow) await new Promise<void>((resolve) => state.clock.after(LOOK_MS, resolve))
  } while (follow && writer.open)
}

/** Where a line that is kept has its time: `{"time":"2026-01-02T03:04:05.678Z",...`. */
const TIME_AT = '{"time":"'.length
const TIME_LENGTH = 24

/** What is kept on disk; `older`: only what began before the flows that the ring still has. */
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
