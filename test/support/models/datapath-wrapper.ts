// A datapath that hands everything on to another one: the base of those that do one thing differently.

import type { Changes, CommitResult, Datapath } from '../../../src/datapath/datapath.ts'

export class DatapathWrapper implements Datapath {
  readonly kind
  readonly start
  readonly setListeners
  readonly setIntercepted
  readonly intercepted
  readonly adopt
  readonly adopted
  readonly setMode
  readonly readMode
  readonly refresh
  readonly onLinkNews
  readonly fence
  readonly fenced
  readonly hookState
  readonly hookKey
  readonly sourceOf
  readonly scanPeers
  readonly drainEvents
  readonly counters
  readonly dump
  readonly stop
  protected readonly inner: Datapath

  constructor(inner: Datapath) {
    this.inner = inner
    this.kind = inner.kind
    this.start = inner.start.bind(inner)
    this.setListeners = inner.setListeners.bind(inner)
    this.setIntercepted = inner.setIntercepted.bind(inner)
    this.intercepted = inner.intercepted.bind(inner)
    this.adopt = inner.adopt.bind(inner)
    this.adopted = inner.adopted.bind(inner)
    this.setMode = inner.setMode.bind(inner)
    this.readMode = inner.readMode.bind(inner)
    this.refresh = inner.refresh.bind(inner)
    this.onLinkNews = inner.onLinkNews.bind(inner)
    this.fence = inner.fence.bind(inner)
    this.fenced = inner.fenced.bind(inner)
    this.hookState = inner.hookState.bind(inner)
    this.hookKey = inner.hookKey.bind(inner)
    this.sourceOf = inner.sourceOf.bind(inner)
    this.scanPeers = inner.scanPeers.bind(inner)
    this.drainEvents = inner.drainEvents.bind(inner)
    this.counters = inner.counters.bind(inner)
    this.dump = inner.dump.bind(inner)
    this.stop = inner.stop.bind(inner)
  }

  commit(changes: Changes): CommitResult | undefined {
    return this.inner.commit(changes)
  }

  onCommitted(listener: (result: CommitResult) => void): void {
    this.inner.onCommitted(listener)
  }
}
