// Resources that the admin API or the program gave, by name: put in force at once, one by one, and kept. Beside those of
// files, whose names they cannot have; together they keep the bounds. One with a TTL goes when the daemon's clock says
// so. Written by ConfigSources alone. A change costs the one resource, however many there are.

import type { Clock, Timer } from '../core/clock.ts'
import { formatPlace } from '../core/errors.ts'
import type { ResourceControl } from '../enforcement/resource-control.ts'
import type { ListedResource, ResourceOutcome } from '../enforcement/resource-outcome.ts'
import { parseResourceObject, type ResourceRecord } from '../endpoints/resources.ts'
import type { Log } from '../telemetry/log.ts'
import {
  API_PLACE,
  expiryOf,
  formatKept,
  parseKept,
  toApiResource,
  type ApiResource,
  type Boot,
} from './api-resource.ts'

/** Where they are kept over restarts. */
export interface ResourceKeeper {
  /** By whose clock ends are kept. */
  readonly boot: Boot
  /** What was kept, as JSON values. */
  read(): readonly unknown[]
  /** Keeps the line of a name, or nothing; resolves when the disk has it. */
  keep(name: string, line: string | undefined): Promise<void>
}

export interface ApiResourcesOptions {
  readonly clock: Clock
  readonly log: Log
  readonly control: ResourceControl
  /** Without it they go with the process. */
  readonly keeper: ResourceKeeper | undefined
  /** Those of files, in force or to be. */
  readonly files: {
    readonly count: number
    find(name: string): ResourceRecord | undefined
  }
  /** `limits.resources`, files included. */
  readonly countMax: number
  /** How many addresses there may be beside what files have. */
  readonly addressesMax: () => number
  /** What is in force is another: ports that have names are, or a name is free again, when the flags say so. */
  readonly onChanged: (change: ResourceNews) => void
}

export interface ResourceNews {
  readonly ports: boolean
  readonly freed: boolean
}

/** Longest wait of a timer; then it looks again. */
const WAIT_MAX = 86_400_000
/** Between two looks at what has ended, when much ends one after the other. */
const LOOK_MS = 100
/** Ended ones that go in one turn. */
const SLICE = 512

export class ApiResources {
  readonly #to: ApiResourcesOptions
  readonly #byName = new Map<string, ApiResource>()
  /** Those that have an end. */
  readonly #mortal = new Map<string, ApiResource>()
  /** Why kept ones are not in force, by name. */
  readonly #leftOut = new Map<string, string>()
  #timer: { readonly at: number; readonly timer: Timer } | undefined
  #addresses = 0
  #refusals = 0
  #stopped = false

  constructor(options: ApiResourcesOptions) {
    this.#to = options
  }

  get records(): readonly ResourceRecord[] {
    return [...this.#byName.values()].map(({ record }) => record)
  }

  /** Of all of them together. */
  get addressCount(): number {
    return this.#addresses
  }

  /** How often a bound refused one. */
  get refusals(): number {
    return this.#refusals
  }

  /** Kept ones that were left out at the start, each until it is given again. */
  get leftOut(): readonly string[] {
    return [...this.#leftOut.values()]
  }

  has(name: string): boolean {
    return this.#byName.has(name)
  }

  /** Every resource in force, with where it is from. */
  *list(): Iterable<ListedResource> {
    for (const resource of this.#to.control.resources) {
      const own = this.#byName.get(resource.name)
      const origin = own === undefined ? 'file' : 'api'
      const expires = own === undefined ? undefined : expiryOf(own, this.#to.clock)
      yield { ...resource, origin, expires }
    }
  }

  /** Puts what was kept back; what is no more good is said and left out. Before the files' own are in force. */
  restore(): void {
    const { keeper, clock } = this.#to
    if (keeper === undefined) return
    for (const kept of keeper.read()) {
      const read = parseKept(kept, clock, keeper.boot)
      if (read.kind === 'over') this.#forget(read.name)
      else if (read.kind === 'bad') this.#leaveOut(read.name ?? read.reason, read.reason)
      else {
        const { record } = read.resource
        const reason = this.#conflict(record)
        if (reason === undefined && this.#put(read.resource)) this.#arm(read.resource.due)
        else this.#leaveOut(record.name, reason ?? `${record.name}: found no room`)
      }
    }
  }

  #leaveOut(name: string, fault: string): void {
    this.#leftOut.set(name, `kept resource left out: ${fault}`)
    this.#to.log.warn({ fault }, 'kept resource left out')
  }

  /** Adds a resource or changes it; nothing has changed unless it is `ok`. */
  set(name: string, body: unknown): ResourceOutcome {
    const { clock, onChanged } = this.#to
    const { resource: record, ttl, faults } = parseResourceObject(name, body, API_PLACE)
    if (record === undefined) {
      return { kind: 'invalid', reasons: faults.map(({ message }) => message) }
    }
    const reason = this.#conflict(record)
    if (reason !== undefined) return { kind: 'conflict', reason }
    const before = this.#byName.get(name)
    const resource = toApiResource(record, ttl, clock)
    const changed = before?.text !== resource.text
    // Its end alone is no change of what is in force, and without one there is nothing to keep anew.
    const isSame = !changed && before.ttl === undefined && ttl === undefined
    if (!isSame && !this.#put(changed ? resource : { ...resource, record: before.record })) {
      return { kind: 'conflict', reason: `${name}: found no room for its addresses` }
    }
    const kept = this.#keep(name)
    this.#arm(resource.due)
    const ports = changed && (hasPorts(record) || hasPorts(before?.record))
    if (changed) onChanged({ ports, freed: false })
    return { kind: 'ok', changed, expires: expiryOf(resource, clock), kept }
  }

  /** Takes a resource away. */
  remove(name: string): ResourceOutcome {
    const known = this.#byName.get(name)
    if (known === undefined) {
      const place = this.#to.files.find(name)?.position
      return place === undefined
        ? { kind: 'unknown', reason: `no resource is named ${JSON.stringify(name)}` }
        : { kind: 'conflict', reason: ofFile(name, formatPlace(place)) }
    }
    this.#drop(name)
    this.#to.onChanged({ ports: hasPorts(known.record), freed: true })
    return { kind: 'ok', changed: true, expires: undefined, kept: this.#keep(name) }
  }

  stop(): void {
    this.#stopped = true
    this.#timer?.timer.cancel()
  }

  /** Why a resource cannot be taken; undefined: it can. */
  #conflict({ name, addresses }: ResourceRecord): string | undefined {
    const { files, countMax, addressesMax } = this.#to
    const place = files.find(name)?.position
    if (place !== undefined) return ofFile(name, formatPlace(place))
    const before = this.#byName.get(name)
    const count = files.count + this.#byName.size + 1
    if (before === undefined && count > countMax) {
      this.#refusals++
      return `found ${count} resources, limits.resources allows ${countMax}`
    }
    const own = this.#addresses - (before?.record.addresses.length ?? 0)
    const room = addressesMax() - own
    if (addresses.length <= room) return undefined
    this.#refusals++
    return `found ${addresses.length} addresses, limits.selectors and limits.resources leave room for ${Math.max(0, room)}`
  }

  /** Puts it in force; false, and as before, when there is no room. */
  #put(resource: ApiResource): boolean {
    const { control } = this.#to
    const { name } = resource.record
    const before = this.#byName.get(name)
    if (before?.record !== resource.record && !control.set(resource.record)) {
      if (before === undefined) control.remove(name)
      else control.set(before.record)
      return false
    }
    this.#addresses += resource.record.addresses.length - (before?.record.addresses.length ?? 0)
    this.#byName.set(name, resource)
    if (resource.ttl === undefined) this.#mortal.delete(name)
    else this.#mortal.set(name, resource)
    return true
  }

  #drop(name: string): void {
    this.#addresses -= this.#byName.get(name)?.record.addresses.length ?? 0
    this.#byName.delete(name)
    this.#mortal.delete(name)
    this.#to.control.remove(name)
  }

  async #keep(name: string): Promise<void> {
    this.#leftOut.delete(name)
    const resource = this.#byName.get(name)
    const { keeper, clock } = this.#to
    const line = keeper && resource && formatKept(resource, clock, keeper.boot)
    await keeper?.keep(name, line)
  }

  /** Keeps no longer what nobody waits for. */
  #forget(name: string): void {
    this.#keep(name).catch((error: unknown) => {
      const fields = { name, error: String(error) }
      this.#to.log.warn(fields, 'resource that ended is still kept')
    })
  }

  /** Takes what has ended, a slice a turn. */
  #expire(): void {
    const { clock, onChanged, log } = this.#to
    this.#timer = undefined
    const now = clock.now()
    let [count, ports] = [0, false]
    for (const [name, { due, record }] of this.#mortal) {
      if (due > now) continue
      if (count === SLICE) break
      count++
      ports ||= hasPorts(record)
      this.#drop(name)
      this.#forget(name)
    }
    if (count > 0) {
      onChanged({ ports, freed: true })
      log.info({ count }, 'resources ended')
    }
    if (count === SLICE && !this.#stopped) clock.soon(() => this.#expire())
    else this.#armNext()
  }

  #armNext(): void {
    let at = Number.POSITIVE_INFINITY
    for (const { due } of this.#mortal.values()) at = Math.min(at, due)
    this.#arm(at, LOOK_MS)
  }

  /** Looks for what has ended at that moment or before, after `pause` at the soonest. */
  #arm(at: number, pause = 0): void {
    const { clock } = this.#to
    if (this.#stopped || at === Number.POSITIVE_INFINITY) return
    if (this.#timer !== undefined && this.#timer.at <= at) return
    this.#timer?.timer.cancel()
    const wait = Math.max(pause, Math.min(WAIT_MAX, at - clock.now()))
    this.#timer = { at, timer: clock.after(wait, () => this.#expire()) }
  }
}

function hasPorts(record: ResourceRecord | undefined): boolean {
  return record?.ports !== undefined
}

function ofFile(name: string, place: string): string {
  return `${name} is a resource of the file ${place}: change it there`
}
