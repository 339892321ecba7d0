// What the disk refused or lost, counted by cause. Each cause is told once, and again when it comes back after an image was
// finished in between: a full disk must not fill the log as well.

import { messageOf, systemCodeOf } from '../core/errors.ts'

export const FAULT_CAUSES = [
  /** ENOSPC, EDQUOT, EFBIG */
  'no-space',
  /** EROFS, EACCES, EPERM */
  'read-only',
  /** EIO */
  'io-error',
  /** Fewer octets were written than given, and no reason. */
  'short-write',
  /** More was given than waits for a disk that is too slow, or a file grew past its bound. */
  'overflow',
  /** A record that does not fit into any frame. */
  'too-large',
  /** What was written is not at its place any more. */
  'lost',
  'other',
] as const

export type FaultCause = (typeof FAULT_CAUSES)[number]

export interface StateFault {
  readonly cause: FaultCause
  readonly message: string
}

const CAUSE_OF: ReadonlyMap<string, FaultCause> = new Map([
  ['ENOSPC', 'no-space'],
  ['EDQUOT', 'no-space'],
  ['EFBIG', 'no-space'],
  ['EROFS', 'read-only'],
  ['EACCES', 'read-only'],
  ['EPERM', 'read-only'],
  ['EIO', 'io-error'],
])

/** Whether a disk that is full, read-only for us or broken refused it. */
export function isRefusal(error: unknown): boolean {
  return CAUSE_OF.has(systemCodeOf(error) ?? '')
}

export class StateFaults {
  readonly counts: Record<FaultCause, number> = {
    'no-space': 0,
    'read-only': 0,
    'io-error': 0,
    'short-write': 0,
    overflow: 0,
    'too-large': 0,
    lost: 0,
    other: 0,
  }
  readonly #tell: (fault: StateFault) => void
  readonly #told = new Set<FaultCause>()

  constructor(tell: (fault: StateFault) => void) {
    this.#tell = tell
  }

  add(cause: FaultCause, message: string): void {
    this.counts[cause]++
    if (this.#told.has(cause)) return
    this.#told.add(cause)
    this.#tell({ cause, message })
  }

  addError(error: unknown): void {
    const code = systemCodeOf(error) ?? ''
    this.add(CAUSE_OF.get(code) ?? 'other', messageOf(error))
  }

  /** The disk takes everything again. */
  healed(): void {
    this.#told.clear()
  }
}
