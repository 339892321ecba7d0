// findTargets translates names of interfaces into what the rules and the datapath need. The rules see a packet of a bridge port
// as a packet of the bridge, so the rules name the bridge. The datapath judges at the port and needs the bridge's address. The
// functions are pure: the caller passes the existing interfaces as a list (`ip -j -d link`).

import type { InterceptedInterface } from '../datapath/abilities.ts'
import { isInterfaceName, type InterceptPlan, type TproxyPart } from './plan.ts'

export interface Link {
  readonly index: number
  readonly name: string
  /** The 6 octets of the interface's own address. Empty if the address has another kind. */
  readonly mac: Uint8Array
  readonly isBridge: boolean
  /** The name of the bridge of which the interface is a port. */
  readonly bridge: string | undefined
  /** True if the interface is part of a bond or switch, so that no rule sees its packets under this name. */
  readonly isTaken: boolean
}

/** Where endpoints are on this host. An interface or cgroup need not exist yet. */
export interface EndpointPlaces {
  /** Interfaces at which packets of endpoints enter this host. */
  readonly interfaces: readonly string[]
  /** Paths inside the cgroup2 mount. */
  readonly cgroups: readonly string[]
}

/** The elements of the sets of one part. */
export interface PartNames {
  /** Interfaces whose packets are routed here. A bridge also stands for its ports. */
  readonly routed: readonly string[]
  /** The existing bridges of this part. */
  readonly bridges: readonly string[]
  /** The interfaces and bridge ports of this part. Packets between two ports of a bridge never reach the `inet` rules. */
  readonly ports: readonly string[]
}

export interface Targeted {
  /** One element for each TPROXY part, in order. */
  readonly parts: readonly PartNames[]
  /** Interfaces for the datapath, by index. */
  readonly interfaces: readonly InterceptedInterface[]
}

/** `endpoints` are the interfaces of endpoints. An interface need not exist yet. */
export function findTargets(
  plan: InterceptPlan,
  endpoints: readonly string[],
  links: readonly Link[],
): Targeted {
  const byName = new Map(links.map((link) => [link.name, link]))
  const interfaces = new Map<number, InterceptedInterface>()
  const parts = plan.tproxy.map((part) => {
    const names = part.ofEndpoints ? endpoints.filter(isInterfaceName) : part.names
    const matching = links.filter(({ name }) => matches(part, names, name)).map(({ name }) => name)
    const chosen = new Set([...names, ...matching].filter((name) => name !== 'lo'))
    const ports = links.filter(
      ({ name, bridge }) => bridge !== undefined && (chosen.has(name) || chosen.has(bridge)),
    )
    const bridges = ports.flatMap(({ bridge }) => (bridge === undefined ? [] : [bridge]))
    const families = { 4: part.targets[4] !== undefined, 6: part.targets[6] !== undefined }
    for (const link of [...ports, ...links.filter(({ name }) => chosen.has(name))]) {
      if (interfaces.has(link.index) || link.isTaken) continue
      const bridgeMac = link.bridge === undefined ? undefined : byName.get(link.bridge)?.mac
      interfaces.set(link.index, {
        ifindex: link.index,
        families,
        ...(bridgeMac === undefined ? {} : { bridgeMac }),
      })
    }
    const own = links.filter(({ name, isBridge }) => isBridge && chosen.has(name))
    return {
      routed: sorted([...names, ...bridges].filter((name) => name !== 'lo')),
      bridges: sorted([...bridges, ...own.map(({ name }) => name)]),
      ports: sorted([...chosen, ...ports.map(({ name }) => name)]),
    }
  })
  return { parts, interfaces: [...interfaces.values()].toSorted((a, b) => a.ifindex - b.ifindex) }
}

function matches(part: TproxyPart, names: readonly string[], name: string): boolean {
  if (name === 'lo') return false
  return names.includes(name) || part.beginnings.some((beginning) => name.startsWith(beginning))
}

function sorted(names: readonly string[]): readonly string[] {
  return [...new Set(names)].toSorted()
}

/** Reads `ip -j -d link`. Ignores fields that are missing or have another type. */
export function parseLinks(json: string): readonly Link[] {
  const parsed: unknown = JSON.parse(json === '' ? '[]' : json)
  if (!Array.isArray(parsed)) return []
  return parsed.flatMap((item: unknown): Link[] => {
    const [index, name] = [fieldOf(item, 'ifindex'), fieldOf(item, 'ifname')]
    if (typeof index !== 'number' || typeof name !== 'string') return []
    const master = fieldOf(item, 'master')
    const info = fieldOf(item, 'linkinfo')
    const kind = fieldOf(info, 'info_slave_kind')
    const isBridge = fieldOf(info, 'info_kind') === 'bridge'
    const bridge = kind === 'bridge' && typeof master === 'string' ? master : undefined
    const isTaken = master !== undefined && bridge === undefined && kind !== 'vrf'
    return [{ index, name, mac: parseMac(fieldOf(item, 'address')), isBridge, bridge, isTaken }]
  })
}

function parseMac(value: unknown): Uint8Array {
  if (typeof value !== 'string' || !/^[0-9a-f]{2}(:[0-9a-f]{2}){5}$/.test(value)) {
    return new Uint8Array(0)
  }
  return Uint8Array.from(value.split(':'), (octet) => Number.parseInt(octet, 16))
}

/** Returns a field of an unknown value. */
export function fieldOf(value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined
}
