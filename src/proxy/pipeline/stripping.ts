// What is taken out of an answer before it leaves (`dns.svcb: strip`, `dns.guard: strip`, `dns.on-degraded:
// strip-addresses`; docs/spec/semantics 4). Called by the releaser, after the commit: an address stays in a degraded answer only if
// the datapath has it with all its labels. Where none of them is asked for, answers are not looked at.
// Cost: else a pass over every answer; see dns/answer-strip.ts for those that lose something.

import type { Family } from '../../core/ip.ts'
import { AnswerStrip, type StripResult } from '../../dns/answer-strip.ts'
import type { UnwantedAddresses } from '../../dns/svcb-strip.ts'
import type { Guard } from '../../names/guard.ts'
import type { MessageView } from '../messages/message-view.ts'
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
    /** Answers that lost something, and those that could not be read or would have been too long. */
    stripped: 0,
    failed: 0,
  }
  readonly taken: AnswerStrip['counters']
  readonly #options: StrippingOptions
  readonly #strip = new AnswerStrip()
  readonly #stripsGuarded: boolean
  readonly #stripsDegraded: boolean
  /** The answer at hand, and whether it is degraded. */
  #index = 0
  #isDegraded = false

  constructor(options: StrippingOptions) {
    const { guard, onDegraded } = options.dns
    this.#options = options
    this.#stripsGuarded = guard === 'strip'
    this.#stripsDegraded = onDegraded === 'strip-addresses'
    this.taken = this.#strip.counters
  }

  /** What is left after 'gone', `length` octets from 0, until the next `strip`. */
  get octets(): Uint8Array {
    return this.#strip.octets
  }

  get length(): number {
    return this.#strip.length
  }

  /** Strips answer `index` of the learner's batch, whose outcome is known. */
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
    // What a document opened to the name was taught all the same.
    return !learner.isFullyLabelled(this.#index, family, octets, offset)
  }
}
