// Stripping removes addresses from an answer before the answer leaves (`dns.svcb: strip`, `dns.guard: strip`, `dns.on-degraded:
// strip-addresses`; docs/spec/semantics 4). settle.ts calls it after the commit: an address stays in a degraded answer only if
// the datapath has the address with all its labels. If none of these settings is on, Stripping does not read answers.
// Otherwise it reads every answer once. The header of dns/answer-strip.ts gives the cost of a removal.

import type { Family } from '../../core/ip.ts'
import { AnswerStrip, type StripResult } from '../../dns/answer-strip.ts'
import type { UnwantedAddresses } from '../../dns/svcb-strip.ts'
import type { Guard } from '../../names/guard.ts'
import type { MessageView } from '../../dns/message-view.ts'
import { OUTCOME_DEGRADED, type Learner } from './learner.ts'

export interface StrippingOptions {
  readonly guard: Pick<Guard, 'isGuarded'>
  readonly learner: Pick<Learner, 'isFullyLabelled' | 'stripsHints'>
  readonly dns: {
    readonly guard: 'pass' | 'strip'
    readonly onDegraded: 'release' | 'servfail' | 'strip-addresses'
  }
}

export class Stripping implements UnwantedAddresses {
  readonly counters = {
    /** Answers from which addresses were removed. */
    stripped: 0,
    /** Answers that could not be read, or that would have been too long. */
    failed: 0,
  }
  readonly taken: AnswerStrip['counters']
  readonly #options: StrippingOptions
  readonly #strip = new AnswerStrip()
  readonly #stripsGuarded: boolean
  readonly #stripsDegraded: boolean
  /** The answer that is being stripped. `#isDegraded` is true if its outcome is degraded and `on-degraded` is `strip-addresses`. */
  #index = 0
  #isDegraded = false

  constructor(options: StrippingOptions) {
    const { guard, onDegraded } = options.dns
    this.#options = options
    this.#stripsGuarded = guard === 'strip'
    this.#stripsDegraded = onDegraded === 'strip-addresses'
    this.taken = this.#strip.counters
  }

  /** After `strip` returned 'gone', the new message: `length` octets from offset 0. It is valid until the next `strip`. */
  get octets(): Uint8Array {
    return this.#strip.octets
  }

  get length(): number {
    return this.#strip.length
  }

  /** Strips answer `index` of the learner's batch. `outcome` is its outcome after the commit. */
  strip(index: number, outcome: number, { octets, offset, length }: MessageView): StripResult {
    this.#index = index
    this.#isDegraded = this.#stripsDegraded && outcome === OUTCOME_DEGRADED
    const stripsHints = this.#options.learner.stripsHints(index)
    const unwanted = this.#stripsGuarded || this.#isDegraded ? this : undefined
    if (unwanted === undefined && !stripsHints) return 'same'
    const result = this.#strip.strip(octets, offset, length, stripsHints, unwanted)
    if (result === 'gone') this.counters.stripped++
    else if (result === 'bad') this.counters.failed++
    return result
  }

  isUnwanted(family: Family, octets: Uint8Array, offset: number): boolean {
    const { guard, learner } = this.#options
    const isGuarded = this.#stripsGuarded && guard.isGuarded(family, octets, offset)
    if (!isGuarded && !this.#isDegraded) return false
    // If a policy document opened this guarded address to the name, the learner has learned the address.
    return !learner.isFullyLabelled(this.#index, family, octets, offset)
  }
}
