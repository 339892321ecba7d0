// Keeps the token of the page and the sessions of browsers that have shown the token. A session is known by its cookie. Tokens and cookies
// are compared by their digests, so the time of a comparison says nothing about them.

import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import type { Clock } from '../../core/clock.ts'

const SESSIONS_MAX = 64
const SESSION_MS = 12 * 3_600_000
const COOKIE = 'namegate'

export class Sessions {
  readonly #token: Buffer
  readonly #clock: Pick<Clock, 'now'>
  readonly #attributes: string
  /** Digest of a cookie -> end of the session. The oldest session is first. */
  readonly #ends = new Map<string, number>()

  constructor(token: string, isSecure: boolean, clock: Pick<Clock, 'now'>) {
    this.#token = digest(token)
    this.#clock = clock
    this.#attributes = `Path=/; HttpOnly; SameSite=Strict${isSecure ? '; Secure' : ''}`
  }

  isToken(text: string): boolean {
    return timingSafeEqual(digest(text), this.#token)
  }

  /** Begins a session, and returns the value of Set-Cookie. The oldest session ends when there are too many. */
  open(): string {
    const secret = randomBytes(32).toString('hex')
    const [oldest] = this.#ends.keys()
    if (this.#ends.size >= SESSIONS_MAX && oldest !== undefined) this.#ends.delete(oldest)
    this.#ends.set(digest(secret).toString('hex'), this.#clock.now() + SESSION_MS)
    return `${COOKIE}=${secret}; Max-Age=${SESSION_MS / 1000}; ${this.#attributes}`
  }

  /** True if the header Cookie names a session that has not ended. */
  has(cookies: string | undefined): boolean {
    const key = keyOf(cookies)
    const end = key === undefined ? undefined : this.#ends.get(key)
    return end !== undefined && end > this.#clock.now()
  }

  /** Ends a session, and returns the value of Set-Cookie. */
  close(cookies: string | undefined): string {
    const key = keyOf(cookies)
    if (key !== undefined) this.#ends.delete(key)
    return `${COOKIE}=; Max-Age=0; ${this.#attributes}`
  }
}

function keyOf(cookies = ''): string | undefined {
  for (const each of cookies.split(';')) {
    const secret = /^\s*namegate=([0-9a-f]{64})\s*$/.exec(each)?.[1]
    if (secret !== undefined) return digest(secret).toString('hex')
  }
  return undefined
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
