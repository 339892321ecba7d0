// Where an endpoint's queries may come in: on the interface of its hook as it is now, or on the bridge that this
// is a port of; those of a cgroup on loopback, where the host's own packets arrive. The source address alone
// could be another workload's [A24], and a query from elsewhere is none of the endpoint's (P12).
// Judged is what transparent listeners take in. In explicit mode the kernel's reverse path and the datapath's source
// check stand in for the interface: a host may well have its endpoints' addresses elsewhere than their hooks.
//
// Interfaces are looked up by name at most every FRESH_EPOCHS, after a mismatch at most once an epoch, and anew
// when endpoints or hooks change; else a query costs one look into a Map.

import type { Clock } from '../../core/clock.ts'
import type { EndpointId } from '../../core/ids.ts'
import type { Endpoint } from '../../endpoints/registry.ts'
import { OVER_TCP, type ClientColumns } from '../messages/client-columns.ts'

/** Interfaces of this network namespace by name and number; negative numbers are errors. */
export interface Interfaces {
  ifIndex(name: string): number
  ifMaster(index: number): number
}

/** include/net/net_namespace.h: loopback is the first interface of every network namespace. */
const LOOPBACK = 1
const EPOCH_MS = 100
const FRESH_EPOCHS = 10

/** UDP listeners, which number their channels from 0; one takes a handful of addresses. */
const CHANNELS_MAX = 256

interface Place {
  index: number
  /** 0: it is a port of nothing. */
  master: number
  epoch: number
}

export class Arrivals {
  readonly #interfaces: Interfaces
  readonly #places = new Map<EndpointId, Place>()
  readonly #clock: Clock
  /** 1 for UDP listeners that are transparent. */
  readonly #judged = new Uint8Array(CHANNELS_MAX)

  constructor(options: { readonly clock: Clock; readonly interfaces: Interfaces }) {
    this.#interfaces = options.interfaces
    this.#clock = options.clock
  }

  /** What this UDP listener takes in is judged. */
  judge(channel: number): void {
    this.#judged[channel] = 1
  }

  /** Whether the arrival of a row counts; a TCP connection knows its interface only where it does. */
  isJudged(clients: ClientColumns, row: number): boolean {
    return clients.transports[row] === OVER_TCP || this.#judged[clients.channels[row]!] === 1
  }

  /** Endpoints, hooks or interfaces changed. */
  forget(): void {
    this.#places.clear()
  }

  /** Whether a query of the endpoint may arrive on that interface; 0 is an unknown one. */
  mayArrive({ id, hook }: Endpoint, ifindex: number): boolean {
    if (ifindex === 0 || hook.kind === 'none') return true
    if (hook.kind === 'cgroup') return ifindex === LOOPBACK
    // Inside the workload's own namespace its packets do not come in, they begin.
    if (hook.side === 'egress' && ifindex === LOOPBACK) return true
    const place = this.#places.get(id)
    if (place === undefined) return isAt(this.#find(id, hook.name), ifindex)
    const age = this.#epoch() - place.epoch
    if (age < FRESH_EPOCHS && isAt(place, ifindex)) return true
    return age > 0 && isAt(this.#find(id, hook.name), ifindex)
  }

  #epoch(): number {
    return Math.floor(this.#clock.now() / EPOCH_MS)
  }

  #find(id: EndpointId, name: string): Place {
    const index = Math.max(this.#interfaces.ifIndex(name), 0)
    const master = index === 0 ? 0 : Math.max(this.#interfaces.ifMaster(index), 0)
    const place = { index, master, epoch: this.#epoch() }
    this.#places.set(id, place)
    return place
  }
}

function isAt({ index, master }: Place, ifindex: number): boolean {
  return ifindex === index || ifindex === master
}
