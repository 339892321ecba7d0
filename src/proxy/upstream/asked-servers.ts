// AskedServers classifies the servers that clients of transparent listeners asked (`upstreams.original-destination`). A server can
// be namegate itself (the pool is asked instead), trusted (namegate learns from its answers), or untrusted. Clients choose these
// servers, so the table is bounded: it keeps the ASKED_MAX most recently used servers. A known server costs one comparison or one
// lookup. Only an IPv6 server that differs from the last one makes a string.

import { LRUCache } from 'lru-cache'
import { containsPrefix, formatAddress, widthOf, type Family, type Prefix } from '../../core/ip.ts'
import type { ClientColumns } from '../messages/client-columns.ts'
import { formatServer, type ServerAddress } from './server-pool.ts'

/** The number of servers that the table keeps. */
export const ASKED_MAX = 1024
const PORTS = 65_536

export interface AskedServer {
  /** `pool`: the client asked namegate itself, or the socket does not report the asked server. */
  readonly kind: 'pool' | 'trusted' | 'untrusted'
  readonly address: ServerAddress
  /** The address and port as text, such as `9.9.9.9:53`. */
  readonly key: string
}

export interface AskedServersOptions {
  /** `upstreams.trusted`. Empty: the configured servers are trusted. */
  readonly trusted: readonly Prefix[]
  readonly servers: readonly ServerAddress[]
  readonly untrusted: 'refuse' | 'pass'
  /** Returns true if a packet to this address and port arrives at a listener of namegate without interception. */
  readonly isOurs: (family: Family, octets: Uint8Array, port: number) => boolean
}

const POOL: AskedServer = {
  kind: 'pool',
  address: { family: 4, address: '0.0.0.0', port: 0 },
  key: '',
}

export class AskedServers {
  readonly #options: AskedServersOptions
  readonly #known = new LRUCache<number | string, AskedServer>({ max: ASKED_MAX })
  readonly #configured: ReadonlySet<string>
  #last: AskedServer = POOL
  readonly #lastOctets = new Uint8Array(16)
  #lastFamily = 0
  #lastPort = 0

  constructor(options: AskedServersOptions) {
    this.#options = options
    this.#configured = new Set(options.servers.map(({ address }) => address))
  }

  /** Returns the server that the client of a row asked. */
  of(clients: ClientColumns, row: number): AskedServer {
    const port = clients.askedPorts[row]!
    if (port === 0) return POOL
    const family: Family = clients.families[row] === 4 ? 4 : 6
    if (!this.#isLast(clients, row, family, port)) {
      this.#last = this.#look(clients.askedAddresses, row * 16, family, port)
      this.#lastFamily = family
      this.#lastPort = port
      for (let i = 0; i < 16; i++) this.#lastOctets[i] = clients.askedAddresses[row * 16 + i]!
    }
    return this.#last
  }

  /** Returns what happens to a query to this address and port: as `kind`, and for an untrusted server, whether it passes. */
  trustIn({ family, octets }: Prefix, port: number): 'pool' | 'trusted' | 'passed' | 'refused' {
    const server = this.#judge(octets, family, port)
    if (server.kind !== 'untrusted') return server.kind
    return this.isRefused(server) ? 'refused' : 'passed'
  }

  /** Returns true if queries to the server are refused, even if policy allows them. */
  isRefused(server: AskedServer): boolean {
    return server.kind === 'untrusted' && this.#options.untrusted === 'refuse'
  }

  #isLast(clients: ClientColumns, row: number, family: Family, port: number): boolean {
    if (port !== this.#lastPort || family !== this.#lastFamily) return false
    for (let i = 0; i < 16; i++) {
      if (clients.askedAddresses[row * 16 + i] !== this.#lastOctets[i]) return false
    }
    return true
  }

  #look(octets: Uint8Array, at: number, family: Family, port: number): AskedServer {
    const key = keyOf(octets, at, family, port)
    const known = this.#known.get(key)
    if (known !== undefined) return known
    const server = this.#judge(octets.slice(at, at + 16), family, port)
    this.#known.set(key, server)
    return server
  }

  #judge(octets: Uint8Array, family: Family, port: number): AskedServer {
    const { isOurs, trusted } = this.#options
    if (isOurs(family, octets, port)) return POOL
    const address = { family, address: formatAddress(family, octets), port }
    const host: Prefix = { family, octets, length: widthOf(family) }
    const isTrusted =
      trusted.length === 0
        ? this.#configured.has(address.address)
        : trusted.some((prefix) => containsPrefix(prefix, host))
    return { kind: isTrusted ? 'trusted' : 'untrusted', address, key: formatServer(address) }
  }
}

/** Returns the key of a server: a number for IPv4, because address and port have 48 bits together; a text for IPv6. */
function keyOf(octets: Uint8Array, at: number, family: Family, port: number): number | string {
  if (family === 6) return `${formatAddress(family, octets, at)} ${port}`
  const high = octets[at]! * 256 + octets[at + 1]!
  const low = octets[at + 2]! * 256 + octets[at + 3]!
  return (high * 65_536 + low) * PORTS + port
}
