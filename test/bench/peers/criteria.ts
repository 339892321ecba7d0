// The project's limits for speed and memory, applied to the medians of a run. A missing figure gives no line, or a line that names it. Pure.

import type { Figures } from './load-result.ts'
import type { LoadName, SubjectName } from './subjects.ts'
import type { Pace } from './turn.ts'

export interface Criterion {
  readonly name: string
  readonly value: number
  readonly unit: 'x' | 'us'
  readonly limit: number
  readonly atLeast: boolean
  /** The desired value beyond the limit. */
  readonly goal?: number
}

/** Medians by subject, load and pace. */
export type FiguresAt = (subject: SubjectName, load: LoadName, pace: Pace) => Figures | undefined

export function isOver({ value, limit, atLeast }: Criterion): boolean {
  return atLeast ? !(value >= limit) : !(value <= limit)
}

export function verdictOf(criterion: Criterion): string {
  if (Number.isNaN(criterion.value)) return 'not measured'
  if (isOver(criterion)) return 'over'
  const { goal } = criterion
  if (goal === undefined) return 'ok'
  return isOver({ ...criterion, limit: goal }) ? 'ok, goal missed' : 'ok, goal met'
}

/** Every criterion, for any number of proxies in the run. */
export function criteriaOf(at: FiguresAt): readonly Criterion[] {
  return [...latencies(at, '1k'), ...latencies(at, '5k'), ...rates(at), ...modes(at)]
}

function latencies(at: FiguresAt, pace: Pace): readonly Criterion[] {
  const added = (load: LoadName, key: 'p50' | 'p99'): number =>
    get(at('namegate', load, pace), key) - get(at('direct', load, pace), key)
  const [p50, p99] = [added('steady', 'p50'), added('steady', 'p99')]
  return [
    atMost(`${pace}/s, known address: p50 added`, p50, 'us', 60),
    atMost(`${pace}/s, known address: p99 added`, p99, 'us', 500),
    atMost(`${pace}/s, new address: p50 added, of known`, added('new', 'p50') / p50, 'x', 1.3),
    atMost(`${pace}/s, new address: p99 added, of known`, added('new', 'p99') / p99, 'x', 1.3),
  ]
}

function rates(at: FiguresAt): readonly Criterion[] {
  const ratio = (load: LoadName, key: 'qps' | 'cpu', peer: SubjectName): number =>
    get(at('namegate', load, 'peak'), key) / get(at(peer, load, 'peak'), key)
  return [
    atLeast('steady: q/s, of dnsdist', ratio('steady', 'qps', 'dnsdist'), 1.15),
    atLeast('steady: q/s, of dnsmasq --nftset', ratio('steady', 'qps', 'dnsmasq-nftset'), 7),
    atMost('steady: CPU/query, of dnsdist', ratio('steady', 'cpu', 'dnsdist'), 'x', 0.9, 0.85),
    atLeast('new: q/s, of dnsdist', ratio('new', 'qps', 'dnsdist'), 0.75, 1),
    atLeast('new: q/s, of dnsmasq --nftset', ratio('new', 'qps', 'dnsmasq-nftset'), 7),
    atLeast('TCP pipelined: q/s, of unbound', ratio('tcp', 'qps', 'unbound'), 2),
    atLeast('TCP, one query each: q/s, of unbound', ratio('tcp-single', 'qps', 'unbound'), 1),
  ]
}

function modes(at: FiguresAt): readonly Criterion[] {
  const ratio =
    get(at('namegate-tproxy', 'steady', 'peak'), 'cpu') /
    get(at('namegate', 'steady', 'peak'), 'cpu')
  return [atMost('TPROXY: CPU/query, of explicit', ratio, 'x', 1.15), ...nftables(at)]
}

/** Compares the same work with `dnsmasq --nftset`, and known addresses with eBPF. */
function nftables(at: FiguresAt): readonly Criterion[] {
  const ratio = (load: LoadName, key: 'qps' | 'cpu', peer: SubjectName): number =>
    get(at('namegate-nftables', load, 'peak'), key) / get(at(peer, load, 'peak'), key)
  return [
    atLeast('nftables, new: q/s, of dnsmasq --nftset', ratio('new', 'qps', 'dnsmasq-nftset'), 4),
    atMost(
      'nftables, new: CPU/query, of dnsmasq --nftset',
      ratio('new', 'cpu', 'dnsmasq-nftset'),
      'x',
      0.3,
    ),
    atMost('nftables, steady: CPU/query, of eBPF', ratio('steady', 'cpu', 'namegate'), 'x', 1.15),
  ]
}

/** Resident memory once per second of a soak: the last third compared with the third before it. */
export function soakCriterion(load: LoadName, residentBytes: readonly number[]): Criterion {
  const third = Math.floor(residentBytes.length / 3)
  const middle = mean(residentBytes.slice(third, 2 * third))
  const last = mean(residentBytes.slice(2 * third))
  return atMost(
    `RSS at half of peak, ${load}: last third, of the one before`,
    last / middle,
    'x',
    1.03,
  )
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}

function get(figures: Figures | undefined, key: keyof Figures): number {
  return figures?.[key] ?? NaN
}

function atMost(
  name: string,
  value: number,
  unit: Criterion['unit'],
  limit: number,
  goal?: number,
): Criterion {
  return { name, value, unit, limit, atLeast: false, ...(goal === undefined ? {} : { goal }) }
}

function atLeast(name: string, value: number, limit: number, goal?: number): Criterion {
  const goals = goal === undefined ? {} : { goal }
  return { name, value, unit: 'x', limit, atLeast: true, ...goals }
}
