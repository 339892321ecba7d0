// Sends the live part of the page to its viewers as JSON lines: once a second the state of the daemon with its counters, and
// twice a second the refusals since the last line, and the keys of earlier refusals that policy allows meanwhile. A line is made
// once for all viewers, so a further viewer costs one write. Without viewers nothing runs. A viewer that does not read is
// disconnected, and the daemon never waits for it.

import type { ServerResponse } from 'node:http'
import type { Timer } from '../../core/clock.ts'
import type { FlowRing } from '../../flows/record/flow-ring.ts'
import type { AdminState } from '../state.ts'
import { flowView, verdictOf } from '../views/flows.ts'
import { statusView } from '../views/status.ts'
import type { PageCounts } from './counts.ts'
import { PolicyLines } from './policy-lines.ts'
import { Folded, type RefusalRow } from './refusals.ts'
import { ShownRefusals } from './shown-refusals.ts'

export const VIEWERS_MAX = 32
const TURN_MS = 500
/** The overview comes with every second turn. */
const TURNS_PER_OVERVIEW = 2
/** Rows of refusals in one line. With the overview, a viewer gets at most about 100 KiB a second. */
const ROWS_MAX = 60
/** Refusals that a new viewer gets from before. */
const BEFORE = 500
/** Refusals that one turn looks at. The rest is counted and left out. */
const LOOKED_MAX = 5000
/** How long one slice of work takes, in milliseconds. */
const SLICE_MS = 2
/** A viewer with more octets than this on the way does not read. */
const BACKLOG_MAX = 262_144
/** A viewer that has taken nothing for this time, in milliseconds, does not read. */
const STALLED_MS = 10_000
const SAMPLES_MAX = 600

/** The metrics that the page shows. Their values are numbers that the daemon counts anyway. */
export const PAGE_METRICS = [
  'dns_queries_total',
  'dns_answers_total',
  'dns_failures_total',
  'dns_hold_seconds',
  'upstream_queries_in_flight',
  'names',
  'ipcache_prefixes',
] as const
const SHOWN: ReadonlySet<string> = new Set(PAGE_METRICS.map((name) => `namegate_${name}`))

interface Viewer {
  readonly response: ServerResponse
  /** Since when the viewer has taken nothing, in milliseconds of the clock. Undefined while it reads. */
  stalledSince: number | undefined
}

export class Live {
  readonly #state: AdminState
  readonly #counts: PageCounts
  readonly #lines: PolicyLines
  readonly #shown: ShownRefusals
  readonly #viewers = new Set<Viewer>()
  #timer: Timer | undefined
  #isAtWork = false
  #turn = 0
  /** Number of the first flow that no line has covered. */
  #next = 0
  #overview = ''

  constructor(state: AdminState, counts: PageCounts) {
    this.#state = state
    this.#counts = counts
    this.#lines = new PolicyLines(state)
    this.#shown = new ShownRefusals(state)
  }

  /** Adds a viewer whose headers are sent. Returns false when there are too many. */
  add(response: ServerResponse): boolean {
    if (this.#viewers.size >= VIEWERS_MAX) return false
    const { clock, flows } = this.#state
    const viewer: Viewer = { response, stalledSince: undefined }
    this.#viewers.add(viewer)
    this.#counts.viewers = this.#viewers.size
    response.on('close', () => this.#remove(viewer))
    if (this.#timer === undefined) {
      this.#next = flows.count
      this.#turn = 0
      this.#timer = clock.every(TURN_MS, () => void this.#run())
    }
    void this.#welcome(viewer)
    return true
  }

  /** Disconnects all viewers. */
  stop(): void {
    for (const { response } of [...this.#viewers]) response.destroy()
    this.#timer?.cancel()
    this.#timer = undefined
  }

  #remove(viewer: Viewer): void {
    this.#viewers.delete(viewer)
    this.#counts.viewers = this.#viewers.size
    if (this.#viewers.size > 0) return
    this.#timer?.cancel()
    this.#timer = undefined
    this.#shown.clear()
  }

  /** Sends the state of now and the latest refusals, so that the page is not empty until something happens. */
  async #welcome(viewer: Viewer): Promise<void> {
    try {
      this.#overview = await this.#makeOverview()
      const { flows } = this.#state
      const before = await this.#refusals(lastRefusals(flows, flows.oldest, BEFORE).numbers)
      const allowed = await this.#allowed(true)
      this.#send(viewer, this.#overview + before + allowed)
      for (const each of this.#viewers) if (each !== viewer) this.#send(each, allowed)
    } catch {
      viewer.response.destroy()
    }
  }

  async #run(): Promise<void> {
    if (this.#isAtWork) return
    this.#isAtWork = true
    try {
      const { count } = this.#state.flows
      const { numbers, earlier } = lastRefusals(this.#state.flows, this.#next, LOOKED_MAX)
      const refusals = await this.#refusals(numbers, earlier)
      this.#next = count
      const isDue = this.#turn++ % TURNS_PER_OVERVIEW === 0
      const overview = isDue ? await this.#makeOverview() : ''
      const text = overview + refusals + (await this.#allowed(false))
      for (const viewer of [...this.#viewers]) this.#send(viewer, text)
    } catch {
      this.stop()
    } finally {
      this.#isAtWork = false
    }
  }

  #send(viewer: Viewer, text: string): void {
    const { response } = viewer
    if (response.destroyed) return
    const now = this.#state.clock.now()
    if (!response.writableNeedDrain) viewer.stalledSince = undefined
    else viewer.stalledSince ??= now
    const stalledFor = now - (viewer.stalledSince ?? now)
    if (response.writableLength > BACKLOG_MAX || stalledFor > STALLED_MS) {
      this.#counts.stalled++
      response.destroy()
    } else if (text !== '') response.write(text)
  }

  async #makeOverview(): Promise<string> {
    const samples = samplesOf(await this.#state.someMetrics((name) => SHOWN.has(name)))
    const { clock } = this.#state
    const at = Math.round(clock.now())
    return `${JSON.stringify({ overview: { at, status: statusView(this.#state), samples } })}\n`
  }

  /** One line with the refusals of these flows, or an empty text. `earlier`: how many refusals before them are left out. */
  async #refusals(numbers: readonly number[], earlier = 0): Promise<string> {
    const { flows, clock, endpoints } = this.#state
    const folded = new Folded(ROWS_MAX, (name) => endpoints.registry.byName(name) !== undefined)
    let until = clock.now() + SLICE_MS
    for (const number of numbers) {
      if (number < flows.oldest) continue
      const deny = flowView(this.#state, number, undefined)
      if (deny !== undefined) folded.add(deny)
      if (clock.now() < until) continue
      await new Promise<void>((resolve) => clock.soon(resolve))
      until = clock.now() + SLICE_MS
    }
    const left = folded.left + earlier
    if (folded.rows.length === 0 && left === 0) return ''
    for (const row of folded.rows) this.#shown.add(row)
    const rows = await Promise.all(folded.rows.map(async (row) => await this.#withTexts(row)))
    return `${JSON.stringify({ refusals: rows, left })}\n`
  }

  /** One line with the keys of refusals that policy allows now, or an empty text. */
  async #allowed(all: boolean): Promise<string> {
    const { clock } = this.#state
    const allowed: string[] = []
    let until = clock.now() + SLICE_MS
    for (const key of this.#shown.allowed(all)) {
      if (key !== undefined) allowed.push(key)
      if (clock.now() < until) continue
      await new Promise<void>((resolve) => clock.soon(resolve))
      until = clock.now() + SLICE_MS
    }
    return allowed.length === 0 ? '' : `${JSON.stringify({ allowed })}\n`
  }

  async #withTexts(row: RefusalRow): Promise<object> {
    const rules = await Promise.all(
      row.rules.slice(0, 4).map(async (rule) => {
        const { file, line } = rule
        return { ...rule, text: (line && (await this.#lines.text(file, line))) ?? null }
      }),
    )
    return { ...row, rules }
  }
}

/** Reads the exposition format: `name{label="x"}` without the prefix -> number. */
function samplesOf(text: string): Readonly<Record<string, number>> {
  const samples: Record<string, number> = {}
  let count = 0
  for (const line of text.split('\n')) {
    const found = /^namegate_([a-z0-9_]+(?:\{.*\})?) (\S+)$/.exec(line)
    if (found === null || ++count > SAMPLES_MAX) continue
    samples[found[1] ?? ''] = Number(found[2])
  }
  return samples
}

/** The numbers of the last `max` refusals from a flow on, oldest first, and how many there are before them. */
function lastRefusals(
  flows: FlowRing,
  from: number,
  max: number,
): { readonly numbers: readonly number[]; readonly earlier: number } {
  const numbers: number[] = []
  for (let number = Math.max(from, flows.oldest); number < flows.count; number++) {
    const verdict = verdictOf(flows.kindOf(number))
    if (verdict === 'deny' || verdict === 'audit') numbers.push(number)
  }
  const earlier = Math.max(0, numbers.length - max)
  return { numbers: numbers.slice(earlier), earlier }
}
