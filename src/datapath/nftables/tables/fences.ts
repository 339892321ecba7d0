// This file makes the elements for interfaces that may do DNS only until they belong to an endpoint. It fences by name, so an
// interface is closed from the first packet after it appears. Patterns and single names become ranges of names that exclude `lo`.

import { matchesPattern } from '../../../core/name-pattern.ts'
import type { Element } from './mirror.ts'

const WIDTH = 16
const END = 1n << BigInt(WIDTH * 8)

interface Range {
  readonly first: bigint
  /** The first name after the range. */
  readonly end: bigint
}

/** Elements of a set of single ranges of interface names, made from names and patterns (`lxc*`). */
export function nameRanges(patterns: Iterable<string>): readonly Element[] {
  const ranges = [...patterns].map(rangeOf).toSorted((a, b) => (a.first < b.first ? -1 : 1))
  const merged: Range[] = []
  for (const range of ranges) {
    const before = merged.at(-1)
    if (before !== undefined && range.first <= before.end) {
      if (range.end > before.end) merged[merged.length - 1] = { ...before, end: range.end }
    } else merged.push(range)
  }
  return merged
    .flatMap(withoutLoopback)
    .flatMap(({ first, end }) => [
      { key: octetsOf(first) },
      ...(end < END ? [{ key: octetsOf(end), isEnd: true }] : []),
    ])
}

export function matches(pattern: string, name: string): boolean {
  return name !== 'lo' && matchesPattern(pattern, name)
}

function rangeOf(pattern: string): Range {
  const isOpen = pattern.endsWith('*')
  const start = isOpen ? pattern.slice(0, -1) : pattern
  const first = numberOf(start)
  const width = isOpen ? 8n * BigInt(WIDTH - start.length) : 0n
  return { first, end: first + (1n << width) }
}

function withoutLoopback(range: Range): readonly Range[] {
  const lo = numberOf('lo')
  if (lo < range.first || lo >= range.end) return [range]
  const parts = [
    { first: range.first, end: lo },
    { first: lo + 1n, end: range.end },
  ]
  return parts.filter(({ first, end }) => first < end)
}

function numberOf(text: string): bigint {
  const octets = Buffer.alloc(WIDTH)
  octets.write(text, 'latin1')
  return BigInt(`0x${octets.toString('hex')}`)
}

function octetsOf(number: bigint): Uint8Array {
  return Buffer.from(number.toString(16).padStart(WIDTH * 2, '0'), 'hex')
}
