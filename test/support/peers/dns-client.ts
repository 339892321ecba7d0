// A client that asks names over UDP and reads the answers, including the extended error.

import dnsPacket, { type Answer } from 'dns-packet'
import { UdpClient, until } from './client.ts'
import { queryFor } from './upstream.ts'

export interface Told {
  readonly rcode: string
  /** Extended DNS Error (RFC 8914), if the answer has one. */
  readonly ede: number | undefined
  /** Text of the Extended DNS Error. */
  readonly why: string
  readonly addresses: readonly string[]
}

const EDE_OPTION = 15
const UDP_SIZE = 1232

export class DnsClient {
  readonly #client: UdpClient
  #id = 0

  private constructor(client: UdpClient) {
    this.#client = client
  }

  static async open(port: number, address = '127.0.0.1'): Promise<DnsClient> {
    return new DnsClient(await UdpClient.open(port, address))
  }

  async ask(name: string): Promise<Told> {
    return readAnswer(await this.#exchange(name))
  }

  /** Like `ask`, for a server that has to start first. */
  async askSlowly(name: string): Promise<Told> {
    return readAnswer(await this.#exchange(name, 60_000))
  }

  /** Sends a query without waiting. `answered` counts the answers. */
  send(name: string): void {
    this.#client.send(queryFor(name, { id: ++this.#id & 0xffff, udpSize: UDP_SIZE }))
  }

  get answered(): number {
    return this.#client.received.length
  }

  close(): void {
    this.#client.close()
  }

  async #exchange(name: string, limitMs = 10_000): Promise<Buffer> {
    const id = ++this.#id & 0xffff
    const from = this.#client.received.length
    this.#client.send(queryFor(name, { id, udpSize: UDP_SIZE }))
    const find = () => this.#client.received.slice(from).find((each) => each.readUInt16BE(0) === id)
    await until(`an answer to ${name}`, () => find() !== undefined, limitMs)
    const found = find()
    if (found === undefined) throw new Error('it was there')
    return found
  }
}

export function readAnswer(octets: Buffer): Told {
  const packet = dnsPacket.decode(octets)
  const addresses = (packet.answers ?? []).flatMap((answer: Answer) =>
    answer.type === 'A' || answer.type === 'AAAA' ? [answer.data] : [],
  )
  const error = errorOf(packet.additionals ?? [])
  const ede = error?.readUInt16BE(0)
  return { rcode: rcodeOf(octets), ede, why: error?.toString('utf8', 2) ?? '', addresses }
}

const RCODES: ReadonlyMap<number, string> = new Map([
  [0, 'NOERROR'],
  [1, 'FORMERR'],
  [2, 'SERVFAIL'],
  [3, 'NXDOMAIN'],
  [4, 'NOTIMP'],
  [5, 'REFUSED'],
])

function rcodeOf(octets: Buffer): string {
  const code = octets.readUInt8(3) & 15
  return RCODES.get(code) ?? String(code)
}

/** Code and text of the Extended DNS Error (RFC 8914 2). */
function errorOf(additionals: readonly Answer[]): Buffer | undefined {
  for (const record of additionals) {
    if (record.type !== 'OPT') continue
    for (const option of record.options) {
      const { code, data }: { readonly code: number; readonly data?: unknown } = option
      if (code === EDE_OPTION && data instanceof Uint8Array) {
        return Buffer.from(data)
      }
    }
  }
  return undefined
}
