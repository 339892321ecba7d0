// This file implements the abilities of a datapath without a kernel. They attach, fence, adopt, follow and report nothing.

import type {
  ExceptionControl,
  FenceControl,
  FlowAdoption,
  InterceptedInterface,
  PeerTable,
} from '../abilities.ts'
import type { NoRepair } from '../repair.ts'

export const NO_FENCES: FenceControl = { set: () => undefined, names: [] }

export const NO_ADOPTION: FlowAdoption = { adopt: () => 0, list: () => [] }

export const NO_PEERS: PeerTable = {
  scan: () => ({ next: () => true }),
  use: () => undefined,
  sourceOf: () => undefined,
}

export const NO_REPAIR: NoRepair = { kind: 'none' }

/** Remembers the intercepted interfaces, but uses them for no packet. */
export class NoExceptions implements ExceptionControl {
  #intercepted: readonly InterceptedInterface[] = []

  setListeners(): void {}

  setOwn(): void {}

  setIntercepted(interfaces: readonly InterceptedInterface[]): void {
    this.#intercepted = interfaces
      .filter(({ families }) => families[4] || families[6])
      .toSorted((a, b) => a.ifindex - b.ifindex)
  }

  intercepted(): readonly InterceptedInterface[] {
    return this.#intercepted
  }
}
