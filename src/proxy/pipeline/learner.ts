// Learner learns the addresses of a batch of answers. After the commit it tells the outcome of each answer:
//   exact     the datapath enforces every address that policy can admit, with all labels;
//   degraded  an address got fewer labels or none, because of a bound or the guard;
//   held-out  the kernel refused an entry that the answer needs.
// If the datapath confirms later than the commit call, an answer is `pending` until its outcome is certain.
// Call `begin`. For each answer call `look`, and then one `add...` method. After the commit, call `outcomeOf`. After its lists have
// grown, Learner allocates nothing.

import type { Config } from '../../config/config.ts'
import { endpointId, type EndpointId } from '../../core/ids.ts'
import { widthOf, type Family } from '../../core/ip.ts'
import { EMPTY_SET } from '../../core/labels.ts'
import type { Committer } from '../../datapath/committer.ts'
import type { AnswerView } from '../../dns/answer.ts'
import type { HashedQuestion } from '../../dns/query.ts'
import { sameOctets } from '../../dns/wire.ts'
import type { CoreState } from '../../enforcement/core-state.ts'
import type { PolicyControl } from '../../enforcement/policy-control.ts'
import { ROW_DEGRADED, type IpCache } from '../../ipcache/ipcache.ts'
import { GUARDED_UNLESS_SAID, UNGUARDED, type Guard } from '../../names/guard.ts'
import { Lesson, NOT_CHECKED } from '../../names/lesson.ts'
import type { AskedLabels } from '../../names/tables/name-table.ts'
import type { NameCache } from '../../names/name-cache.ts'
import type { SelectorLabels } from '../../names/labels/selector-labels.ts'
import { IdList } from '../../core/tables/id-list.ts'
import { ANSWERS_CAPACITY } from '../messages/answer-batch.ts'
import { AnswerSettings } from './answer-settings.ts'
import { ChainLinks } from './chain-links.ts'

export const OUTCOME_EXACT = 1
export const OUTCOME_DEGRADED = 2
export const OUTCOME_HELD_OUT = 3
/** The datapath has not yet confirmed entries that the answer needs. The answer must be settled again later. */
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
  /** For each answer from which addresses were learned, the endpoint that asked. */
  readonly #endpoints: EndpointId[] = Array.from({ length: ANSWERS_CAPACITY }, () => NOBODY)
  readonly #degraded = new Uint8Array(ANSWERS_CAPACITY)
  /** The rows of answer i are `rows[ends[i - 1]]` to `rows[ends[i] - 1]`. */
  readonly #ends = new Int32Array(ANSWERS_CAPACITY)
  readonly #rows = new IdList(1024)
  /** The address that is being learned. */
  readonly #lesson = new Lesson()
  readonly #links: ChainLinks
  /** 1 for an answer from which the address hints are removed. */
  readonly #stripsHints = new Uint8Array(ANSWERS_CAPACITY)
  #count = 0
  /** True if the answers of the batch were counted before, when they arrived. */
  #isCounted = false
  /** The time of the batch, in seconds. */
  #now = 0

  constructor(options: LearnerOptions) {
    this.#options = options
    this.#links = new ChainLinks(options.names, options.selectorLabels)
  }

  /** True if there is something to commit. */
  get changed(): boolean {
    return this.#options.ipcache.changedCount > 0
  }

  /** Begins a batch. `again` is true if the answers were held: they were counted when they arrived. */
  begin(again = false): void {
    this.#count = 0
    this.#isCounted = again
    this.#rows.clear()
    this.#now = this.#options.names.tick()
    this.#options.names.begin()
  }

  /** Looks up the settings for the next answer. Returns true if addresses in its hints are learned. */
  look(endpoint: EndpointId, name: Uint8Array): boolean {
    const { settings } = this.#options
    settings.look(endpoint, name)
    return settings.svcb === 'learn'
  }

  /** Adds an answer to an endpoint that no longer exists, or that is now a new workload at the same place. */
  addOrphan(): void {
    this.#next(ORPHAN, 0)
  }

  /** Adds an answer that passes, and from which nothing is learned: its client is unknown, or its server is not trusted. */
  addUntaught(rcode: number): void {
    this.#degraded[this.#count] = 0
    this.#next(TEACHES, rcode)
  }

  addMalformed(): void {
    this.#next(MALFORMED, 0)
  }

  /** Adds an answer to `endpoint`, and learns its addresses. */
  add(endpoint: EndpointId, question: HashedQuestion & AskedLabels, answer: AnswerView): void {
    const { names, settings, maxTtl } = this.#options
    const { minTtl, grace } = settings
    const lesson = this.#lesson
    const { name } = lesson
    name.set(question.name, question.nameLength, question.nameHash)
    name.labels = question.labels
    name.labelEpoch = question.labelEpoch
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
      if (row === 0 && this.#isSelected(lesson)) degraded = 1
      if (row !== 0 && this.#isPartly(lesson)) degraded = 1
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

  /** Learns an address that is new to the endpoint under this name. Returns its row, or 0 if the guard or a bound prevented it. */
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

  /**
   * Returns true if the address is guarded and lacks a label that the same name gives to an unguarded address. It has only the labels of
   * selectors from documents that have `allow-guarded` now. If the endpoint has `allow-named`, `reserved:named` is always missing.
   */
  #isPartly({ endpoint, name, family, octets, offset }: Lesson): boolean {
    const { names, guard, selectorLabels } = this.#options
    if (!selectorLabels.wasOpen || guard.levelOf(family, octets, offset) === UNGUARDED) return false
    const labels = selectorLabels.labelsOfKey(name)
    const isPart = selectorLabels.guardedLabelsOf(name.wire, 0) !== labels
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

  /** Returns the number of addresses that were learned from answer i. */
  countOf(i: number): number {
    return this.#ends[i]! - (i === 0 ? 0 : this.#ends[i - 1]!)
  }

  /** Call it after the commit. Returns true if the address at `at` (4 or 16 octets) was learned from answer i and has all its labels. */
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

  /** Call it after the commit. Returns the outcome of answer i. */
  outcomeOf(i: number): number {
    const { committer, ipcache } = this.#options
    const { isUnderWay } = committer
    const endpoint = this.#endpoints[i] ?? NOBODY
    let outcome = this.#degraded[i] === 1 ? OUTCOME_DEGRADED : OUTCOME_EXACT
    let isPending = false
    for (let at = i === 0 ? 0 : this.#ends[i - 1]!; at < this.#ends[i]!; at++) {
      // After this answer, another answer of the batch can have given the endpoint its own view of the address.
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

  /** Returns true if the name would give labels to the endpoint's view of an address. */
  #isSelected({ endpoint, name }: Lesson): boolean {
    const { names, selectorLabels } = this.#options
    return names.scopes.isNamed(endpoint) || selectorLabels.labelsOfKey(name) !== EMPTY_SET
  }
}

const SECOND_MS = 1000

/** Makes a learner with the settings of the configuration. Minimum TTL and grace are rounded up to seconds, the maximum TTL down. */
export function makeLearner(
  dns: Config['dns'],
  core: CoreState,
  policies: Pick<PolicyControl, 'answerRulesOf'>,
): Learner {
  const { names, ipcache, committer, guard, selectorLabels } = core
  const defaults = {
    minTtl: Math.ceil(dns.minTtlMs / SECOND_MS),
    grace: Math.ceil(dns.graceAfterTtlMs / SECOND_MS),
    cnameMatch: dns.cnameMatch,
    svcb: dns.svcb,
  }
  return new Learner({
    names,
    ipcache,
    committer,
    guard,
    selectorLabels,
    settings: new AnswerSettings(policies, defaults),
    maxTtl: Math.floor(dns.maxTtlMs / SECOND_MS),
  })
}
