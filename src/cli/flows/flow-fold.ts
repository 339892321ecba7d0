// FlowFold folds equal flows into one flow with a count and the time of the last. Flows are equal if they differ only in number and time.
// A group is open for a window of time after its first flow. Groups are printed in the order of their first flows, each when its window is
// over. For a reader that follows, the first flow of a group is printed at once, and the repetitions as one flow at the end of the window.

import { textOf } from '../fields.ts'
import type { FlowFields } from './flow-fields.ts'

interface Group {
  /** The first flow that is not printed yet. Undefined while all flows of the group are printed. */
  flow: FlowFields | undefined
  count: number
  /** RFC 3339. */
  last: string
  /** When the window is over, in wall-clock milliseconds. */
  readonly until: number
}

export interface FlowFoldOptions {
  readonly print: (flow: FlowFields) => void
  readonly windowMs: number
  /** True if the first flow of a group is printed at once. */
  readonly isEarly: boolean
}

export class FlowFold {
  readonly #options: FlowFoldOptions
  /** In the order of the first flows. */
  readonly #groups = new Map<string, Group>()

  constructor(options: FlowFoldOptions) {
    this.#options = options
  }

  add(flow: FlowFields): void {
    const { isEarly, print, windowMs } = this.#options
    const begin = Date.parse(textOf(flow.time))
    this.passTime(begin)
    const key = keyOf(flow)
    const count = typeof flow.count === 'number' ? flow.count : 1
    const last = textOf(flow.last ?? flow.time)
    const known = this.#groups.get(key)
    if (known !== undefined) {
      known.flow ??= flow
      known.count += count
      known.last = last
      return
    }
    const open = isEarly ? { flow: undefined, count: 0 } : { flow, count }
    this.#groups.set(key, { ...open, last, until: begin + windowMs })
    if (isEarly) print(flow)
  }

  /** Prints the groups whose windows are over. `now`: wall-clock milliseconds. */
  passTime(now: number): void {
    for (const [key, group] of this.#groups) {
      if (group.until > now) return
      this.#groups.delete(key)
      this.#print(group)
    }
  }

  /** Prints all groups. */
  end(): void {
    this.passTime(Number.POSITIVE_INFINITY)
  }

  #print({ flow, count, last }: Group): void {
    if (flow !== undefined) this.#options.print(count === 1 ? flow : { ...flow, count, last })
  }
}

function keyOf(flow: FlowFields): string {
  const {
    number: _number,
    time: _time,
    count: _count,
    last: _last,
    expired: _expired,
    ...rest
  } = flow
  return JSON.stringify(rest)
}
