// Counts wrong tokens for each client address, and says when an address has to wait. All addresses of an IPv6 /64 count as one.

import { LRUCache } from 'lru-cache'
import type { Clock } from '../../core/clock.ts'

const GUESSES_MAX = 5
const WINDOW_MS = 60_000
const ADDRESSES_MAX = 1024

interface Window {
  readonly until: number
  count: number
}

export class Guesses {
  readonly #clock: Pick<Clock, 'now'>
  readonly #windows = new LRUCache<string, Window>({ max: ADDRESSES_MAX })

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock
  }

  /** Returns how many seconds the address must wait before its next token is looked at: 0 while it can try. */
  wait(address: string): number {
    const window = this.#windows.get(networkOf(address))
    if (window === undefined || window.count < GUESSES_MAX) return 0
    return Math.max(0, Math.ceil((window.until - this.#clock.now()) / 1000))
  }

  /** Counts a wrong token. */
  add(address: string): void {
    const key = networkOf(address)
    const now = this.#clock.now()
    const window = this.#windows.get(key)
    if (window !== undefined && window.until > now) window.count++
    else this.#windows.set(key, { until: now + WINDOW_MS, count: 1 })
  }
}

function networkOf(address: string): string {
  if (!address.includes(':') || address.startsWith('::ffff:')) return address
  const [head = '', tail] = address.split('::')
  const groups = head.split(':')
  const zeros = tail === undefined ? 0 : 8 - groups.length - tail.split(':').length
  return [...groups, ...Array<string>(Math.max(0, zeros)).fill('0'), ...(tail ?? '').split(':')]
    .slice(0, 4)
    .join(':')
}
