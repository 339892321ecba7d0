// The servers that clients of transparent listeners asked, with `upstreams.original-destination`: which of them are
// ourselves (then the pool is asked), which may teach addresses, and which are not to be asked at all. What is known
// of a server is kept for the last ASKED_MAX of them; clients choose them, so the table is bounded.
// A server asked again costs one comparison or one look-up; only an IPv6 server other than the last one makes a string.

import { LRUCache } from 'lru-cache'
import { containsPrefix, formatAddress, widthOf, type Family, type Prefix } from '../../core/ip.ts'
import type { ClientColumns } from '../messages/client-columns.ts'
import { formatServer, type ServerAddress } from './server-pool.ts'

/** Asked servers remembered. */
export const ASKED_MAX = 1024
const PORTS = 65_536

export interface AskedServer {
  /** `pool`: the client asked namegate itself, or the socket does not say which server it asked. */
  readonly kind: 'pool' | 'trusted' | 'untrusted'
  readonly address: ServerAddress
  /** `9.9.9.9:53` */
  readonly key: string
}

export interface AskedServersOptions {
  /** `upstreams.trusted`; empty: the configured servers. */
  readonly trusted: readonly Prefix[]
  readonly servers: readonly ServerAddress[]
  readonly untrusted: 'refuse' | 'pass'
  /** Whether what is sent there arrives at a listener of ours without interception. */
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

  /** The server that a row's client asked. */
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

  /** Whether queries to the server are refused whatever policy says. */
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

/** An IPv4 address and a port are 48 bits, which a number holds; the rest are texts. */
function keyOf(octets: Uint8Array, at: number, family: Family, port: number): number | string {
  if (family === 6) return `${formatAddress(family, octets, at)} ${port}`
  const high = octets[at]! * 256 + octets[at + 1]!
  const low = octets[at + 2]! * 256 + octets[at + 3]!
  return (high * 65_536 + low) * PORTS + port
}
