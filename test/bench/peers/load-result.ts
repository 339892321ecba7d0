// The result of one run of the load generator, and the row that it makes with the CPU time of the proxy.

import { median } from '../support/measure.ts'
import { percentileUs, type Buckets } from './histogram.ts'

/** `load.c`'s line of JSON. All fields except `latency` are counts or nanoseconds. */
export interface LoadResult {
  readonly sent: number
  readonly answered: number
  /** Answered before sending ended. */
  readonly inTime: number
  readonly lost: number
  /** Answers that match no query of the load. */
  readonly wrong: number
  /** Queries of the paced load that were sent more than 1 ms late. */
  readonly late: number
  readonly refusedSend: number
  readonly reconnects: number
  readonly noerror: number
  readonly servfail: number
  readonly refused: number
  readonly other: number
  readonly elapsedNs: number
  /** CPU time of the generator itself. */
  readonly cpuNs: number
  /** The lowest number that no name has had. */
  readonly next: number
  readonly latency: Buckets
}

/** CPU time in us, resident octets. Undefined without a proxy. */
export interface Usage {
  readonly cpuUs: number
  readonly residentBytes: number
}

/** Numbers of one row of the table. NaN if there is none. */
export interface Figures {
  readonly qps: number
  /** CPU of the proxy per answered query, us. */
  readonly cpu: number
  readonly p50: number
  readonly p99: number
  readonly p999: number
  /** Shares of the sent and of the answered queries. */
  readonly lost: number
  readonly noerror: number
  readonly rssMb: number
  /** CPU of the generator, and of the upstream, per query, us. */
  readonly generator: number
  readonly upstream: number
  readonly wrong: number
  /** Share of the paced queries that were sent late. */
  readonly late: number
  /** Number of CPUs that other processes on the machine kept busy meanwhile. */
  readonly others: number
}

export function parseLoadResult(text: string): LoadResult {
  return JSON.parse(text) as LoadResult
}

export function figuresOf(
  load: LoadResult,
  proxy: Usage | undefined,
  rest: { readonly upstreamCpuUs: number; readonly others: number },
): Figures {
  return {
    qps: (load.inTime * 1e9) / load.elapsedNs,
    cpu: (proxy?.cpuUs ?? NaN) / load.answered,
    p50: percentileUs(load.latency, 0.5),
    p99: percentileUs(load.latency, 0.99),
    p999: percentileUs(load.latency, 0.999),
    lost: load.lost / load.sent,
    noerror: load.noerror / load.answered,
    rssMb: (proxy?.residentBytes ?? NaN) / 1e6,
    generator: load.cpuNs / 1000 / load.answered,
    upstream: rest.upstreamCpuUs / load.answered,
    wrong: load.wrong,
    late: load.late / load.sent,
    others: rest.others,
  }
}

/** The median of each figure over the rounds. */
export function medianFigures(rounds: readonly Figures[]): Figures {
  const of = (key: keyof Figures): number => median(rounds.map((round) => round[key]))
  return {
    qps: of('qps'),
    cpu: of('cpu'),
    p50: of('p50'),
    p99: of('p99'),
    p999: of('p999'),
    lost: of('lost'),
    noerror: of('noerror'),
    rssMb: of('rssMb'),
    generator: of('generator'),
    upstream: of('upstream'),
    wrong: of('wrong'),
    late: of('late'),
    others: of('others'),
  }
}
