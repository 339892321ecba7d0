// Packets of a scenario: `ENDPOINT ADDRESS:PORT[/udp]`, IPv6 in brackets. The datapath's own judge decides about each.

import assert from 'node:assert/strict'
import type { Endpoint } from '../../../src/endpoints/registry.ts'
import { formatAddress, parseAddress } from '../../../src/core/ip.ts'
import { ACK, FIN, frame, PSH, SYN, tcp, udp, type Segment } from '../../support/packets.ts'
import type { World } from './world.ts'

interface Peer {
  readonly address: string
  readonly port: number
  readonly protocol: 'tcp' | 'udp'
}

/** The port of an opened connection. Single packets have other ports. */
const CONNECTION_PORT = 50_000
const SINGLE_PORT = 40_000

/** The verdict on a packet that begins a connection: `allow`, `drop`, `audit` or `bypass`. */
export function judge(world: World, from: string, to: string): string {
  const peer = parsePeer(to)
  const ports = { from: SINGLE_PORT, to: peer.port }
  return send(world, from, peer, peer.protocol === 'udp' ? udp(ports) : tcp(ports, SYN))
}

/** Opens a TCP connection with three packets, which must pass. */
export function open(world: World, from: string, to: string): void {
  const peer = parsePeer(to)
  const ports = { from: CONNECTION_PORT, to: peer.port }
  const back = { from: peer.port, to: CONNECTION_PORT }
  assert.equal(send(world, from, peer, tcp(ports, SYN)), 'allow', 'the connection may be opened')
  receive(world, from, peer, tcp(back, SYN | ACK))
  assert.equal(send(world, from, peer, tcp(ports, ACK)), 'allow', 'the connection may be opened')
}

/** Closes a connection with a FIN from either side. */
export function close(world: World, from: string, to: string): void {
  const peer = parsePeer(to)
  send(world, from, peer, tcp({ from: CONNECTION_PORT, to: peer.port }, FIN | ACK))
  receive(world, from, peer, tcp({ from: peer.port, to: CONNECTION_PORT }, FIN | ACK))
}

/** The verdict on a packet with data on an open connection. */
export function sendOn(world: World, from: string, to: string): string {
  const peer = parsePeer(to)
  return send(world, from, peer, tcp({ from: CONNECTION_PORT, to: peer.port }, PSH | ACK))
}

function send(world: World, from: string, peer: Peer, segment: Segment): string {
  const endpoint = world.endpoint(from)
  const before = world.kernel.reports.counters()
  const route = { source: addressFor(endpoint, peer), target: peer.address }
  const verdict = world.kernel.judge(endpoint.id, 'from', frame(route, segment))
  const after = world.kernel.reports.counters()
  const grew = (name: string): boolean => after[name] !== before[name]
  if (verdict === 'drop') return 'drop'
  return grew('verdict_audit') ? 'audit' : grew('verdict_bypass') ? 'bypass' : 'allow'
}

function receive(world: World, to: string, peer: Peer, segment: Segment): void {
  const endpoint = world.endpoint(to)
  const route = { source: peer.address, target: addressFor(endpoint, peer) }
  world.kernel.judge(endpoint.id, 'to', frame(route, segment))
}

/** The endpoint's first address of the peer's family. */
function addressFor(endpoint: Endpoint, peer: Peer): string {
  const family = parseAddress(peer.address)?.family
  const own = endpoint.addresses.find((prefix) => prefix.family === family)
  assert.ok(own !== undefined, `${endpoint.name} has an address of the peer's family`)
  return formatAddress(own.family, own.octets)
}

function parsePeer(text: string): Peer {
  const [, six, four, port, protocol = 'tcp'] =
    /^(?:\[([0-9a-f:.]+)\]|([0-9.]+)):(\d+)(?:\/(tcp|udp))?$/.exec(text) ?? []
  const address = six ?? four ?? ''
  assert.ok(parseAddress(address) !== undefined, `ADDRESS:PORT[/udp], not ${text}`)
  return { address, port: Number(port), protocol: protocol === 'udp' ? 'udp' : 'tcp' }
}
