// Interfaces whose DNS is redirected after the datapath: the model of src/datapath/ebpf/programs/intercept.h, which has the reasons.
// Also the time that an interface stays quiet afterwards (src/datapath/ebpf/maps/exceptions.ts).

import type { Clock } from '../../../../src/core/clock.ts'
import type { Family } from '../../../../src/core/ip.ts'
import { TCP, UDP } from '../../../../src/core/protocol.ts'
import type { InterceptedInterface } from '../../../../src/datapath/abilities.ts'
import { isTagged, type Packet } from './packet.ts'

const DNS_PORT = 53
const QUIET_MS = 60_000

interface Entry {
  /** Undefined: no longer intercepted. */
  readonly now: InterceptedInterface | undefined
  readonly quiet: { readonly 4: boolean; readonly 6: boolean }
  readonly quietUntil: number
}

export class Interceptions {
  readonly #clock: Clock
  readonly #entries = new Map<number, Entry>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  set(interfaces: readonly InterceptedInterface[]): void {
    const listed = interfaces.filter(({ families }) => families[4] || families[6])
    const wanted = new Set(listed.map(({ ifindex }) => ifindex))
    const now = this.#clock.now()
    for (const [ifindex, entry] of this.#entries) {
      if (wanted.has(ifindex)) continue
      if (entry.now !== undefined) {
        this.#entries.set(ifindex, { ...entry, now: undefined, quietUntil: now + QUIET_MS })
      } else if (entry.quietUntil < now) this.#entries.delete(ifindex)
    }
    for (const each of listed) {
      const before = this.#entries.get(each.ifindex)?.quiet
      const quiet = {
        4: each.families[4] || before?.[4] === true,
        6: each.families[6] || before?.[6] === true,
      }
      this.#entries.set(each.ifindex, { now: each, quiet, quietUntil: Infinity })
    }
  }

  list(): readonly InterceptedInterface[] {
    const found = [...this.#entries.values()].flatMap((entry) => entry.now ?? [])
    return found.toSorted((a, b) => a.ifindex - b.ifindex)
  }

  clear(): void {
    this.#entries.clear()
  }

  /** Whether interception rules redirect a packet that came in on the interface. */
  covers(ifindex: number, packet: Packet, frame: Uint8Array): boolean {
    const entry = this.#entries.get(ifindex)?.now
    if (entry === undefined || !isDns(packet, packet.targetPort) || isTagged(frame)) return false
    if (packet.adorned || isGroup(packet)) return false
    return entry.families[packet.family] && !this.isBridged(ifindex, frame)
  }

  /** Whether a frame stays on the bridge of the port where it came in. */
  isBridged(ifindex: number, frame: Uint8Array): boolean {
    return (
      this.#entries.get(ifindex)?.now?.bridgeMac?.some((octet, i) => frame[i] !== octet) ?? false
    )
  }

  /** Whether a packet that leaves by the interface begins no connection. */
  isQuiet(ifindex: number, packet: Packet): boolean {
    const entry = this.#entries.get(ifindex)
    if (entry === undefined || !isDns(packet, packet.sourcePort)) return false
    const family: Family = packet.family
    return entry.quiet[family] && this.#clock.now() < entry.quietUntil
  }
}

function isDns({ protocol, laterFragment }: Packet, port: number): boolean {
  return port === DNS_PORT && !laterFragment && (protocol === TCP || protocol === UDP)
}

function isGroup({ family, target }: Packet): boolean {
  return (target[0] ?? 0) >= (family === 4 ? 224 : 255)
}
