// One turn of one proxy under one load: start, warm-up, measurement, stop. A turn of UDP first runs at 1,000 and 5,000 queries a second, for
// latency, then as fast as possible.

import { setTimeout as sleep } from 'node:timers/promises'
import { figuresOf, type Figures } from './load-result.ts'
import type { Subject } from './proxy.ts'
import { STEADY_NAMES, type LoadRequest, type Stage } from './stage.ts'
import type { LoadName } from './subjects.ts'

export const PACES = ['1k', '5k', 'peak'] as const
export type Pace = (typeof PACES)[number]
const RATE_OF: Readonly<Record<Pace, number>> = { '1k': 1000, '5k': 5000, peak: 0 }

/** Seconds. */
export interface Times {
  readonly warmUp: number
  readonly paced: number
  readonly peak: number
}

export interface TurnResult {
  readonly rows: ReadonlyMap<Pace, Figures>
  readonly note: string
}

/** A proxy runs, but does not answer. */
export class NoAnswers extends Error {
  constructor() {
    super('not one query was answered')
  }
}

/** TTL and grace of the new names, and a little more: the addresses of the warm-up have expired by then. */
const SETTLE_MS = 2500

export async function runTurn(
  stage: Stage,
  subject: Subject,
  load: LoadName,
  times: Times,
): Promise<TurnResult> {
  const running = await subject.start(load)
  try {
    const request = requestOf(load, running.server)
    const rows = new Map<Pace, Figures>()
    await warmUp(stage, request, running.pid, times.warmUp)
    const paces = request.mode === 'udp' ? PACES : (['peak'] as const)
    for (const pace of paces) {
      const seconds = pace === 'peak' ? times.peak : times.paced
      const one = await stage.load({ ...request, rate: RATE_OF[pace], seconds }, running.pid)
      rows.set(pace, figuresOf(one.load, one.proxy, one))
    }
    return { rows, note: await running.note() }
  } finally {
    await running.stop()
  }
}

export function requestOf(load: LoadName, server: string): LoadRequest {
  const mode = load === 'tcp' || load === 'tcp-single' ? load : 'udp'
  return { mode, server, known: load !== 'new', rate: 0, seconds: 0 }
}

/** Asks all steady names once, then runs the load itself, so that everything is compiled and grown afterwards. */
export async function warmUp(
  stage: Stage,
  request: LoadRequest,
  pid: number,
  seconds: number,
): Promise<void> {
  if (request.known) {
    await stage.load({ ...request, mode: 'udp', count: STEADY_NAMES, seconds: 20 }, pid)
  }
  const { load } = await stage.load({ ...request, seconds }, pid)
  if (load.noerror === 0) throw new NoAnswers()
  if (!request.known) await sleep(SETTLE_MS)
}
