// Closes what a test of the transport opened, in the reverse order, after each test. Reads answers.

import dnsPacket from 'dns-packet'
import { TcpClient, UdpClient } from './peers/client.ts'
import { Forwarder, type ForwarderOptions } from './peers/forwarder.ts'
import { answering, FakeUpstream, queryFor, type Behaviour } from './peers/upstream.ts'

export type TransportOptions = Omit<ForwarderOptions, 'servers'>

export class Transport {
  readonly #opened: { stop(): Promise<void> | void }[] = []

  /** Starts a name server. */
  async serve(behaviour: Behaviour = answering): Promise<FakeUpstream> {
    return this.#keep(await FakeUpstream.start(behaviour))
  }

  /** Starts a proxy that forwards to those servers. */
  async forward(
    servers: readonly FakeUpstream[],
    options: TransportOptions = {},
  ): Promise<Forwarder> {
    const addresses = servers.map((server) => server.address)
    return this.#keep(Forwarder.start({ servers: addresses, ...options }))
  }

  /** Starts a name server and a proxy that forwards to it. */
  async forwardTo(behaviour: Behaviour, options: TransportOptions = {}): Promise<Forwarder> {
    return this.forward([await this.serve(behaviour)], options)
  }

  async udpClient(forwarder: Forwarder, address?: string, port?: number): Promise<UdpClient> {
    const client = await UdpClient.open(forwarder.udpPort, address, port)
    this.#keep({ stop: () => client.close() })
    return client
  }

  async tcpClient(forwarder: Forwarder, address?: string): Promise<TcpClient> {
    const client = await TcpClient.open(forwarder.tcpPort, address)
    this.#keep({ stop: () => client.close() })
    return client
  }

  async stop(): Promise<void> {
    for (const one of this.#opened.splice(0).reverse()) await one.stop()
  }

  #keep<T extends { stop(): Promise<void> | void }>(one: T): T {
    this.#opened.push(one)
    return one
  }
}

/** Queries for n0.test, n1.test ... with ids 0, 1 ... */
export function queries(count: number): Buffer[] {
  return Array.from({ length: count }, (_, i) => queryFor(`n${i}.test`, { id: i }))
}

export function idsOf(answers: readonly Buffer[]): number[] {
  return answers.map((answer) => answer.readUInt16BE(0))
}

/** The RCODE; 255 without an answer. */
export function rcodeOf(octets: Buffer | undefined): number {
  return octets === undefined ? 255 : octets.readUInt8(3) & 15
}

/** The addresses of the A records as texts. */
export function addressesOf(octets: Buffer | undefined): readonly unknown[] {
  if (octets === undefined) return ['no answer']
  return (dnsPacket.decode(octets).answers ?? []).flatMap((answer) =>
    answer.type === 'A' ? [answer.data] : [],
  )
}

/** The octets with some of them changed. */
export function edit(octets: Buffer, changes: readonly (readonly [number, number])[]): Buffer {
  const copy = Buffer.from(octets)
  for (const [at, value] of changes) copy.writeUInt8(value, at)
  return copy
}

export function byNumber(a: number, b: number): number {
  return a - b
}
