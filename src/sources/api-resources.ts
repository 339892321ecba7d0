// Holds the resources that the admin API or the program sets by name. Each is put in force at once and stored over restarts. They share
// names and bounds with the resources of files. A resource with a TTL ends by the daemon's clock. A change costs the same however many
// resources there are.

import type { Clock, Timer } from '../core/clock.ts'
import { formatPlace, type Position } from '../core/errors.ts'
import type { ResourceControl, ResourceOutcome } from '../enforcement/resource-control.ts'
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
import { ListedResources } from './listed-resources.ts'

/** Stores resources over restarts. */
export interface ResourceKeeper {
  /** The clock that measures the stored ends. */
  readonly boot: Boot
  /** The stored resources, as JSON values. */
  read(): readonly unknown[]
  /** Stores the line of a name, or removes it when `line` is undefined. Resolves when the disk has the change. */
  keep(name: string, line: string | undefined): Promise<void>
}

export interface ApiResourcesOptions {
  readonly clock: Clock
  readonly log: Log
  readonly control: ResourceControl
  /** Stores resources. Undefined: resources end with the process. */
  readonly keeper: ResourceKeeper | undefined
  /** The resources of files that are in force or proposed. */
  readonly files: {
    readonly count: number
    find(name: string): ResourceRecord | undefined
  }
  /** `limits.resources`, which includes resources of files. */
  readonly countMax: number
  /** How many addresses the API can add to the configured addresses. */
  readonly addressesMax: () => number
  readonly onChanged: (change: ResourceChange) => void
}

/** A change of the resources in force. */
export interface ResourceChange {
  /** True if named ports changed. */
  readonly ports: boolean
  /** True if a name can be used again. */
  readonly freed: boolean
}

/** The longest wait of one timer, in milliseconds. */
const WAIT_MAX = 86_400_000
/** The shortest time between two removals of resources that have ended. */
const LOOK_MS = 100
/** How many resources are removed in one turn. */
const SLICE = 512

export class ApiResources {
  readonly #options: ApiResourcesOptions
  readonly #byName = new Map<string, ApiResource>()
  /** Resources with a TTL. */
  readonly #mortal = new Map<string, ApiResource>()
  /** For each stored resource that is not in force, the reason. */
  readonly #leftOut = new Map<string, string>()
  #timer: { readonly at: number; readonly timer: Timer } | undefined
  /** Every resource in force, also those of files. */
  readonly listed: ListedResources
  #addresses = 0
  #refusals = 0
  #stopped = false

  constructor(options: ApiResourcesOptions) {
    this.#options = options
    const { clock, control } = options
    const own = (name: string): ApiResource | undefined => this.#byName.get(name)
    this.listed = new ListedResources({ clock, control, own })
  }

  get records(): readonly ResourceRecord[] {
    return [...this.#byName.values()].map(({ record }) => record)
  }

  /** The number of addresses of all these resources. */
  get addressCount(): number {
    return this.#addresses
  }

  /** How often a bound refused a resource. */
  get refusals(): number {
    return this.#refusals
  }

  /** Why the start left out stored resources. A reason stays until its resource is set again. */
  get leftOut(): readonly string[] {
    return [...this.#leftOut.values()]
  }

  has(name: string): boolean {
    return this.#byName.has(name)
  }

  /** Restores the stored resources, before resources of files are in force. Leaves out and logs each invalid resource. */
  restore(): void {
    const { keeper, clock } = this.#options
    if (keeper === undefined) return
    for (const kept of keeper.read()) {
      const read = parseKept(kept, clock, keeper.boot)
      if (read.kind === 'over') this.#forget(read.name)
      else if (read.kind === 'bad') this.#leaveOut(read.name ?? read.reason, read.reason)
      else {
        const { record } = read.resource
        const reason = this.#conflict(record)?.reason
        if (reason === undefined && this.#put(read.resource)) this.#arm(read.resource.due)
        else this.#leaveOut(record.name, reason ?? `${record.name}: found no room`)
      }
    }
  }

  #leaveOut(name: string, fault: string): void {
    this.#leftOut.set(name, `kept resource left out: ${fault}`)
    this.#options.log.warn({ fault }, 'kept resource left out')
  }

  /** Adds or changes a resource. If the result is not `ok`, nothing has changed. */
  set(name: string, body: unknown): ResourceOutcome {
    const { clock, onChanged } = this.#options
    const { resource: record, ttl, faults } = parseResourceObject(name, body, API_PLACE)
    if (record === undefined) {
      return { kind: 'invalid', reasons: faults.map(({ message }) => message) }
    }
    const conflict = this.#conflict(record)
    if (conflict !== undefined) return { kind: 'conflict', ...conflict }
    const before = this.#byName.get(name)
    const resource = toApiResource(record, ttl, clock)
    const changed = before?.text !== resource.text
    // A new end changes nothing that is in force. If neither version has an end, there is nothing to store.
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

  /** Removes a resource. */
  remove(name: string): ResourceOutcome {
    const known = this.#byName.get(name)
    if (known === undefined) {
      const place = this.#options.files.find(name)?.position
      return place === undefined
        ? { kind: 'unknown', reason: `no resource is named ${JSON.stringify(name)}` }
        : { kind: 'conflict', ...ofFile(name, place) }
    }
    this.#drop(name)
    this.#options.onChanged({ ports: hasPorts(known.record), freed: true })
    return { kind: 'ok', changed: true, expires: undefined, kept: this.#keep(name) }
  }

  stop(): void {
    this.#stopped = true
    this.#timer?.timer.cancel()
  }

  /** Returns why a resource is refused, or undefined when it is accepted. */
  #conflict({ name, addresses }: ResourceRecord): Conflict | undefined {
    const { files, countMax, addressesMax } = this.#options
    const place = files.find(name)?.position
    if (place !== undefined) return ofFile(name, place)
    const before = this.#byName.get(name)
    const count = files.count + this.#byName.size + 1
    if (before === undefined && count > countMax) {
      this.#refusals++
      return { reason: `found ${count} resources, limits.resources allows ${countMax}` }
    }
    const own = this.#addresses - (before?.record.addresses.length ?? 0)
    const room = addressesMax() - own
    if (addresses.length <= room) return undefined
    this.#refusals++
    const bounds = 'limits.selectors and limits.resources'
    const found = `found ${addresses.length} addresses`
    return { reason: `${found}, ${bounds} leave room for ${Math.max(0, room)}` }
  }

  /** Puts a resource in force. Returns false, and changes nothing, when there is no room. */
  #put(resource: ApiResource): boolean {
    const { control } = this.#options
    const { name } = resource.record
    const before = this.#byName.get(name)
    if (before?.record !== resource.record && !control.set(resource.record)) {
      if (before === undefined) control.remove(name)
      else control.set(before.record)
      return false
    }
    this.#addresses += resource.record.addresses.length - (before?.record.addresses.length ?? 0)
    this.#byName.set(name, resource)
    this.listed.ends++
    if (resource.ttl === undefined) this.#mortal.delete(name)
    else this.#mortal.set(name, resource)
    return true
  }

  #drop(name: string): void {
    this.#addresses -= this.#byName.get(name)?.record.addresses.length ?? 0
    this.#byName.delete(name)
    this.#mortal.delete(name)
    this.#options.control.remove(name)
  }

  async #keep(name: string): Promise<void> {
    this.#leftOut.delete(name)
    const resource = this.#byName.get(name)
    const { keeper, clock } = this.#options
    const line = keeper && resource && formatKept(resource, clock, keeper.boot)
    await keeper?.keep(name, line)
  }

  /** Removes a resource from the store without waiting for the disk. */
  #forget(name: string): void {
    this.#keep(name).catch((error: unknown) => {
      const fields = { name, error: String(error) }
      this.#options.log.warn(fields, 'resource that ended is still kept')
    })
  }

  /** Removes resources that have ended, one slice in each turn. */
  #expire(): void {
    const { clock, onChanged, log } = this.#options
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

  /** Sets the timer for time `at`, but not earlier than `pause` milliseconds from now. */
  #arm(at: number, pause = 0): void {
    const { clock } = this.#options
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

interface Conflict {
  readonly reason: string
  readonly position?: Position
}

function ofFile(name: string, position: Position): Conflict {
  const place = formatPlace(position)
  return { reason: `${name} is a resource of the file ${place}: change it there`, position }
}
