// Reflector keeps the owner of a collection up to date: it lists the objects, watches their changes, and recovers from every failure by
// itself. It is one state machine over ports (clock, connection, chance). At any time it has exactly one of these: an open request with a
// time limit, a timer, or a place in the queue of the gate. README.md has the table of states and transitions.

import type { ApiAnswer, ApiLoss, ApiPort, ApiStreamEnd } from '../connection/api-port.ts'
import { describeStatus, type ApiStatus } from '../connection/api-status.ts'
import { Backoff, randomPart } from './backoff.ts'
import type { CollectionState } from './collection-events.ts'
import { Initial } from './initial.ts'
import { KnownVersion } from './known-version.ts'
import { MissingLook } from './missing-look.ts'
import { outcomeOf, outcomeOfEnd, outcomeOfEvent, type Doing, type Outcome } from './outcome.ts'
import type { KubernetesObject } from './objects.ts'
import { PagedList, type ListEnd } from './paged-list.ts'
import { countIn, countRequests, newCounts, type ListCause } from './reflector-counts.ts'
import { PAGE_MS, SILENT_MS, type ReflectorOptions } from './reflector-options.ts'
import {
  freshnessOf,
  listPath,
  PAGE_SIZE,
  pageSizeAfter,
  watchListPath,
  watchPath,
} from './requests.ts'
import { checkVersion } from './version-check.ts'
import { readEvent } from './watch-event.ts'
import { Work } from './work.ts'

export class Reflector {
  readonly counts = newCounts()
  readonly #options: ReflectorOptions
  readonly #api: ApiPort
  readonly #backoff: Backoff
  readonly #missing: MissingLook
  readonly #known = new KnownVersion(this.counts)
  readonly #work: Work
  #state: CollectionState = 'listing'
  #reason = ''
  /** Why a list is due. Undefined: a watch can continue from the version. */
  #due: ListCause | undefined = 'start'
  /** The objects of the list that is under way. */
  #initial: Initial | undefined
  /** True if the open watch has brought an event or a bookmark. */
  #hasBrought = false
  #offersWatchList = true
  #pageSize = PAGE_SIZE
  #isStopped = false

  constructor(options: ReflectorOptions) {
    this.#options = options
    this.#api = countRequests(options.api, countIn(this.counts.requests))
    this.#backoff = new Backoff(options.random)
    this.#work = new Work(options.clock)
    this.#missing = new MissingLook({ ...options, api: this.#api })
  }

  start(): void {
    this.#enter('listing', 'the first list is under way')
    this.#go()
  }

  /** Stops for good. No event comes afterwards. */
  stop(): void {
    this.#isStopped = true
    this.#rest()
  }

  get #doing(): Doing {
    if (this.#due === undefined) return 'watch'
    return this.#offersWatchList ? 'watch-list' : 'pages'
  }

  /** Does what is due. */
  #go(): void {
    if (this.#isStopped) return
    if (this.#due === undefined) return this.#watch()
    if (this.#known.version === undefined) this.#list()
    else this.#work.queue(this.#options.gate, () => this.#list())
  }

  #list(): void {
    const { target, random } = this.#options
    this.counts.lists[this.#due ?? 'retry']++
    this.#initial = new Initial(target.collection, (fault) => this.#malformed(fault))
    if (this.#offersWatchList) this.#open(watchListPath(target, random))
    else this.#listPages()
  }

  #listPages(): void {
    const { target } = this.#options
    const freshness = freshnessOf(target, this.#known)
    const request = new PagedList(this.#api, {
      pathOf: (next) => listPath(target, freshness, this.#pageSize, next),
      take: (items) => {
        this.#work.heard()
        return this.#initial?.take(items) === true
      },
      onEnd: (end) => this.#listed(end, freshness.kind === 'latest'),
    })
    this.#work.open(request, PAGE_MS, () => this.#failed('no page of the list came in time'))
  }

  #listed(end: ListEnd, isLatest: boolean): void {
    switch (end.kind) {
      case 'listed':
        if (this.#finish(end.version, isLatest)) this.#watch()
        return
      case 'refused':
        return this.#follow(outcomeOf(end.status, this.#doing))
      case 'torn':
      case 'too-long':
      case 'lost':
        if (end.kind === 'torn') this.counts.torn++
        this.#pageSize = pageSizeAfter(end.kind, this.#pageSize)
        return this.#failed(end.reason)
    }
  }

  #watch(): void {
    const { target, random } = this.#options
    this.#open(watchPath(target, this.#known.version ?? '', random))
  }

  #open(path: string): void {
    this.#hasBrought = false
    const request = this.#api.watch(path, {
      onOpen: () => {
        this.#work.heard()
        if (this.#initial === undefined) this.#watching()
      },
      onEvent: (event) => this.#event(event),
      onEnd: (end) => this.#ended(end),
    })
    this.#work.open(request, PAGE_MS, () => {
      this.counts.silences++
      // A server that ignores the parameters of a watch-list never ends the initial state.
      if (this.#initial !== undefined) this.#withoutWatchList()
      else this.#failed('the API server sent nothing for too long')
    })
  }

  #watching(): void {
    this.#missing.isThere()
    this.#work.allow(SILENT_MS)
    this.#enter('watching', '')
  }

  #event(value: unknown): void {
    this.#work.heard()
    const event = readEvent(value, this.#options.target.collection)
    switch (event.kind) {
      case 'change':
      case 'removal':
        this.counts.events++
        if (this.#initial === undefined) return this.#apply(event.kind, event.object)
        if (this.#initial.change(event.kind, event.object)) return
        return this.#failed('the list has too many objects')
      case 'bookmark':
        this.counts.bookmarks++
        if (this.#initial === undefined) this.#advance(event.version)
        else if (event.endsInitial && this.#finish(event.version, true)) this.#watching()
        return
      case 'error':
        return this.#follow(outcomeOfEvent(event.status, this.#doing))
      case 'fault':
        return this.#malformed(event.fault)
    }
  }

  #apply(kind: 'change' | 'removal', object: KubernetesObject): void {
    const { events } = this.#options
    const version = object.metadata.resourceVersion
    if (kind === 'change' && this.#known.isAhead(version)) {
      this.counts.stale++
      return
    }
    if (kind === 'removal') events.onRemove(object)
    else events.onChange(object)
    this.#advance(version)
  }

  /** The server has said that the known state is that of `version`. */
  #advance(version: string): void {
    if (this.#isStopped) return
    this.#known.advance(version)
    this.#hasBrought = true
    this.#backoff.reset()
    this.#options.events.onCurrent()
  }

  #malformed(fault: string): void {
    this.counts.malformed++
    this.#options.events.onMalformed(fault)
  }

  /** The list is complete. Returns false if it is not applied, and the reflector has chosen another way, or was stopped. */
  #finish(version: string, isLatest: boolean): boolean {
    const { events } = this.#options
    if (!this.#known.take(version, isLatest)) {
      this.#failed(`the API server has version ${version}, which is older than what is known`)
      return false
    }
    const objects = this.#initial?.all() ?? []
    this.#due = undefined
    this.#initial = undefined
    this.#pageSize = PAGE_SIZE
    this.#hasBrought = true
    this.#backoff.reset()
    this.#work.leaveGate()
    events.onList(objects)
    if (isLatest && !this.#isStopped) events.onCurrent()
    return !this.#isStopped
  }

  #ended(end: ApiAnswer | ApiLoss | ApiStreamEnd): void {
    const life = { hasBrought: this.#hasBrought, ageMs: this.#work.age }
    if (end.kind === 'lost') this.#offersWatchList = true // the next server can be another one
    this.#follow(outcomeOfEnd(end, this.#doing, life))
  }

  #follow(outcome: Outcome): void {
    switch (outcome.kind) {
      case 'resume':
        return this.#watch()
      case 'check':
        return this.#check()
      case 'pages':
        return this.#withoutWatchList()
      case 'relist':
        return this.#relist(outcome.cause, outcome.reason)
      case 'look':
        return this.#look(outcome.status)
      case 'retry':
        if (outcome.doubts) this.#known.doubt()
        return this.#failed(outcome.reason, outcome.retryAfterMs)
    }
  }

  #withoutWatchList(): void {
    this.#offersWatchList = false
    this.#due = 'fallback'
    this.#rest()
    this.#go()
  }

  /** Nothing came in a whole watch. Finds out if the server is behind what is known. */
  #check(): void {
    const request = checkVersion(this.#api, this.#options.target, this.#known, (found) => {
      if (found === 'behind') return this.#relist('behind', 'the server is behind what is known')
      if (found === 'lost') return this.#failed('no answer from the API server')
      if (found === 'current') this.#options.events.onCurrent()
      if (!this.#isStopped) this.#watch()
    })
    this.#work.open(request, PAGE_MS, () => this.#failed('no answer from the API server in time'))
  }

  /** Finds out if the kind or a right is missing. */
  #look(status: ApiStatus): void {
    const verb = this.#doing === 'pages' ? 'list' : 'watch'
    this.#rest()
    const request = this.#missing.begin(status, verb, this.#state, (found) => {
      if (found.kind === 'again') return this.#go()
      if (found.kind === 'unknown') return this.#failed(found.reason)
      // The objects of a new definition have nothing to do with those of the old one.
      if (found.state === 'absent') this.#due = 'appeared'
      this.#enter(found.state, found.reason)
      this.#work.wait(found.waitMs, () => this.#go())
    })
    this.#work.open(request, PAGE_MS, () => this.#failed(describeStatus(status)))
  }

  /** What is known stays. A list is due, at a random time. */
  #relist(cause: ListCause, reason: string): void {
    this.#rest()
    this.#due = cause
    this.#enter('listing', `${reason}; a new list is due`)
    this.#work.wait(randomPart(this.#options.random, this.#options.spreadMs), () => this.#go())
  }

  /** Waits, and then does what is due. */
  #failed(reason: string, retryAfterMs?: number): void {
    this.#rest()
    this.#missing.forget()
    if (this.#due !== undefined) this.#due = 'retry'
    this.#enter('away', reason)
    this.#work.wait(this.#backoff.next(retryAfterMs), () => this.#go())
  }

  #rest(): void {
    this.#work.end()
    this.#initial = undefined
  }

  #enter(state: CollectionState, reason: string): void {
    if (this.#isStopped || (state === this.#state && reason === this.#reason)) return
    this.#state = state
    this.#reason = reason
    this.#options.events.onState(state, reason)
  }
}
