// What a batch of answers teaches, and what becomes of each answer once the datapath was asked to follow:
//   exact     every address that policy may admit is enforced under all its labels;
//   degraded  an address got fewer labels or none: a bound was reached or the guard forbids it;
//   held-out  the kernel refused an entry that the answer needs.
// With a datapath that takes its time an answer is `pending` until one of the three is certain.
// Filled between `begin` and the commit, read after it. Nothing is allocated once the lists have grown.

import type { Config } from '../../config/config.ts'
import { endpointId, type EndpointId } from '../../core/ids.ts'
import { widthOf, type Family } from '../../core/ip.ts'
import { EMPTY_SET } from '../../core/labels.ts'
import type { Committer } from '../../datapath/committer.ts'
import type { AnswerView } from '../../dns/answer.ts'
import type { HashedQuestion, Question } from '../../dns/query.ts'
import { sameOctets } from '../../dns/wire.ts'
import type { CoreState } from '../../enforcement/core-state.ts'
import type { PolicyControl } from '../../enforcement/policy-control.ts'
import { ROW_DEGRADED, type IpCache } from '../../ipcache/ipcache.ts'
import { GUARDED_UNLESS_SAID, UNGUARDED, type Guard } from '../../names/guard.ts'
import { Lesson, NOT_CHECKED } from '../../names/lesson.ts'
import type { NameCache } from '../../names/name-cache.ts'
import type { SelectorLabels } from '../../names/labels/selector-labels.ts'
import { IdList } from '../../core/tables/id-list.ts'
import { ANSWERS_CAPACITY } from '../messages/answer-batch.ts'
import { AnswerSettings } from './answer-settings.ts'
import { ChainLinks } from './chain-links.ts'

export const OUTCOME_EXACT = 1
export const OUTCOME_DEGRADED = 2
export const OUTCOME_HELD_OUT = 3
/** What the answer needs is on its way into the datapath: it is settled again later. */
export const OUTCOME_PENDING = 4

const NOBODY = endpointId(0)
const TEACHES = 0
const MALFORMED = 1
const ORPHAN = 2

export interface LearnerOptions {
  readonly names: NameCache
  readonly ipcache: IpCache
  readonly committer: Committer
  readonly guard: Guard
  readonly selectorLabels: SelectorLabels
  readonly settings: AnswerSettings
  /** `dns.max-ttl` in seconds. */
  readonly maxTtl: number
}

export class Learner {
  readonly counters = { addresses: 0, guarded: 0, overBound: 0 }
  readonly #options: LearnerOptions
  readonly #states = new Uint8Array(ANSWERS_CAPACITY)
  readonly #rcodes = new Uint16Array(ANSWERS_CAPACITY)
  /** The endpoint that asked, where something was taught. */
  readonly #endpoints: EndpointId[] = Array.from({ length: ANSWERS_CAPACITY }, () => NOBODY)
  readonly #degraded = new Uint8Array(ANSWERS_CAPACITY)
  /** Rows of answer i are `rows[ends[i - 1]]` to below `rows[ends[i]]`. */
  readonly #ends = new Int32Array(ANSWERS_CAPACITY)
  readonly #rows = new IdList(1024)
  /** The address at hand. */
  readonly #lesson = new Lesson()
  readonly #links: ChainLinks
  /** Whether an answer's hints are to be taken out. */
  readonly #stripsHints = new Uint8Array(ANSWERS_CAPACITY)
  #count = 0
  /** Whether the batch was counted when it came first. */
  #isCounted = false
  /** The second of the batch. */
  #now = 0

  constructor(options: LearnerOptions) {
    this.#options = options
    this.#links = new ChainLinks(options)
  }

  /** Whether something is to be committed. */
  get changed(): boolean {
    return this.#options.ipcache.changedCount > 0
  }

  /** `again`: its answers were held and were counted when they came. */
  begin(again = false): void {
    this.#count = 0
    this.#isCounted = again
    this.#rows.clear()
    this.#now = this.#options.names.tick()
    this.#options.names.begin()
  }

  /** Looks up what holds for the next answer; whether hints in it teach. */
  look(endpoint: EndpointId, name: Uint8Array): boolean {
    const { settings } = this.#options
    settings.look(endpoint, name)
    return settings.svcb === 'learn'
  }

  /** The next answer is for an endpoint that is no more. */
  addOrphan(): void {
    this.#next(ORPHAN, 0)
  }

  /** The next answer is for no known endpoint: it is passed and teaches nothing. */
  addUntaught(rcode: number): void {
    this.#degraded[this.#count] = 0
    this.#next(TEACHES, rcode)
  }

  addMalformed(): void {
    this.#next(MALFORMED, 0)
  }

  /** Takes in what the next answer teaches its endpoint. */
  add(endpoint: EndpointId, question: HashedQuestion, answer: AnswerView): void {
    const { names, settings, maxTtl } = this.#options
    const { minTtl, grace } = settings
    const lesson = this.#lesson
    const { name } = lesson
    name.set(question.name, question.nameLength, question.nameHash)
    lesson.endpoint = endpoint
    lesson.octets = answer.octets
    lesson.now = this.#now
    lesson.grace = grace
    const known = answer.count === 0 ? 0 : names.findCurrent(name)
    const matchesLinks = this.#links.read(answer, settings)
    let degraded = 0
    for (let i = 0; i < answer.count; i++) {
      const family = answer.families[i] === 4 ? 4 : 6
      const ttl = Math.min(Math.max(answer.ttls[i]!, minTtl), maxTtl)
      lesson.family = family
      lesson.offset = i * 16
      lesson.liveUntil = this.#now + Math.ceil(ttl)
      lesson.guarded = NOT_CHECKED
      let row = known === 0 ? 0 : names.renew(known, lesson)
      if (row === 0) row = this.#learn(lesson)
      if (row === 0 && this.#isSelected(endpoint, question)) degraded = 1
      if (row !== 0 && this.#isPartly(endpoint, question, family, answer.octets, i * 16))
        degraded = 1
      if (matchesLinks && answer.owners[i] !== 0) {
        if (row !== 0) row = this.#links.learn(lesson, answer.owners[i]!, row)
        if (row === 0 ? this.#links.isSelected(answer.owners[i]!) : this.#links.isLeftOut)
          degraded = 1
      }
      if (row !== 0) this.#rows.push(row)
    }
    if (!this.#isCounted) this.counters.addresses += answer.count
    this.#degraded[this.#count] = degraded
    this.#endpoints[this.#count] = endpoint
    this.#next(TEACHES, answer.rcode)
  }

  /** The row of an address that the endpoint did not know by this name, 0 when it is left out. */
  #learn(lesson: Lesson): number {
    const { names, guard, selectorLabels } = this.#options
    const level = guard.levelOf(lesson.family, lesson.octets, lesson.offset)
    lesson.guarded = level
    const isOpen =
      level === UNGUARDED ||
      (level === GUARDED_UNLESS_SAID &&
        selectorLabels.guardedLabelsOf(lesson.name.wire, 0) !== EMPTY_SET)
    if (!isOpen) {
      if (!this.#isCounted) this.counters.guarded++
      return 0
    }
    const row = names.learn(lesson)
    if (row === 0 && !this.#isCounted) this.counters.overBound++
    return row
  }

  /** Whether the address is guarded, and opened to fewer of the labels that the name has, or to none by now. */
  #isPartly(
    endpoint: EndpointId,
    question: Question,
    family: Family,
    octets: Uint8Array,
    at: number,
  ): boolean {
    const { names, guard, selectorLabels } = this.#options
    if (!selectorLabels.wasOpen || guard.levelOf(family, octets, at) === UNGUARDED) return false
    const labels = selectorLabels.labelsOf(question.name, 0)
    const isPart = selectorLabels.guardedLabelsOf(question.name, 0) !== labels
    return isPart || names.scopes.isNamed(endpoint)
  }

  isOrphan(i: number): boolean {
    return this.#states[i] === ORPHAN
  }

  isMalformed(i: number): boolean {
    return this.#states[i] === MALFORMED
  }

  rcodeOf(i: number): number {
    return this.#rcodes[i]!
  }

  stripsHints(i: number): boolean {
    return this.#stripsHints[i] === 1
  }

  /** Addresses that answer i taught. */
  countOf(i: number): number {
    return this.#ends[i]! - (i === 0 ? 0 : this.#ends[i - 1]!)
  }

  /** Whether answer i taught the address of 4 or 16 octets at `at`, and it has all its labels; after the commit. */
  isFullyLabelled(i: number, family: Family, octets: Uint8Array, at: number): boolean {
    const { prefixes } = this.#options.ipcache
    const width = widthOf(family)
    for (let end = this.#ends[i]!, k = end - this.countOf(i); k < end; k++) {
      const row = this.#rows.items[k]!
      if (prefixes.lengths[row] !== width) continue
      if (!sameOctets(prefixes.octets, row * 16, octets, at, width >> 3)) continue
      const seen = prefixes.scoped.viewOf(this.#endpoints[i] ?? NOBODY, row)
      return (prefixes.flags[seen]! & ROW_DEGRADED) === 0
    }
    return false
  }

  /** What became of answer i; after the commit. */
  outcomeOf(i: number): number {
    const { committer, ipcache } = this.#options
    const { isUnderWay } = committer
    const endpoint = this.#endpoints[i] ?? NOBODY
    let outcome = this.#degraded[i] === 1 ? OUTCOME_DEGRADED : OUTCOME_EXACT
    let isPending = false
    for (let at = i === 0 ? 0 : this.#ends[i - 1]!; at < this.#ends[i]!; at++) {
      // Another answer of the batch may have given the endpoint a view of the address since.
      const row = ipcache.prefixes.scoped.viewOf(endpoint, this.#rows.items[at]!)
      if (isUnderWay && committer.isPending(row, endpoint)) {
        isPending = true
        continue
      }
      if (!committer.isApplied(row)) return OUTCOME_HELD_OUT
      if ((ipcache.prefixes.flags[row]! & ROW_DEGRADED) !== 0) outcome = OUTCOME_DEGRADED
    }
    return isPending ? OUTCOME_PENDING : outcome
  }

  #next(state: number, rcode: number): void {
    this.#states[this.#count] = state
    this.#stripsHints[this.#count] = this.#options.settings.svcb === 'strip' ? 1 : 0
    this.#rcodes[this.#count] = rcode
    this.#ends[this.#count++] = this.#rows.count
  }

  /** Whether the endpoint's view of an address would get labels from this name. */
  #isSelected(endpoint: EndpointId, question: Question): boolean {
    const { names, selectorLabels } = this.#options
    if (names.scopes.isNamed(endpoint)) return true
    return selectorLabels.labelsOf(question.name, 0) !== EMPTY_SET
  }
}

const SECOND_MS = 1000

export interface MakeLearnerOptions {
  readonly config: Pick<Config, 'dns'>
  readonly core: CoreState
  readonly policies: PolicyControl
}

/** A learner as the config says: durations become whole seconds, the least rounded up and the most down. */
export function makeLearner({ config: { dns }, core, policies }: MakeLearnerOptions): Learner {
  const { names, ipcache, committer, guard, selectorLabels } = core
  return new Learner({
    ...{ names, ipcache, committer, guard, selectorLabels },
    maxTtl: Math.floor(dns.maxTtlMs / SECOND_MS),
    settings: new AnswerSettings({
      policies,
      defaults: {
        minTtl: Math.ceil(dns.minTtlMs / SECOND_MS),
        grace: Math.ceil(dns.graceAfterTtlMs / SECOND_MS),
        cnameMatch: dns.cnameMatch,
        svcb: dns.svcb,
      },
    }),
  })
}
