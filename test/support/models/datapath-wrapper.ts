// A datapath that passes every call to another one: the base class of wrappers that change one call.

import type { Changes, CommitResult } from '../../../src/datapath/entries.ts'
import type { Datapath } from '../../../src/datapath/datapath.ts'

export class DatapathWrapper implements Datapath {
  readonly kind: Datapath['kind']
  readonly readAhead: Datapath['readAhead']
  readonly start: Datapath['start']
  readonly dump: Datapath['dump']
  readonly dumpInSlices: Datapath['dumpInSlices']
  readonly stop: Datapath['stop']
  protected readonly inner: Datapath

  constructor(inner: Datapath) {
    this.inner = inner
    this.kind = inner.kind
    this.readAhead = inner.readAhead.bind(inner)
    this.start = inner.start.bind(inner)
    this.dump = inner.dump.bind(inner)
    this.dumpInSlices = inner.dumpInSlices.bind(inner)
    this.stop = inner.stop.bind(inner)
  }

  get mode(): Datapath['mode'] {
    return this.inner.mode
  }

  get hooks(): Datapath['hooks'] {
    return this.inner.hooks
  }

  get fences(): Datapath['fences'] {
    return this.inner.fences
  }

  get exceptions(): Datapath['exceptions'] {
    return this.inner.exceptions
  }

  get adoption(): Datapath['adoption'] {
    return this.inner.adoption
  }

  get peers(): Datapath['peers'] {
    return this.inner.peers
  }

  get reports(): Datapath['reports'] {
    return this.inner.reports
  }

  get repair(): Datapath['repair'] {
    return this.inner.repair
  }

  commit(changes: Changes): CommitResult | undefined {
    return this.inner.commit(changes)
  }

  onCommitted(listener: (result: CommitResult) => void): void {
    this.inner.onCommitted(listener)
  }
}
