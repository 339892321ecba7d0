// An authoritative name server for labs, as a process: UDP and TCP on every given address.
//   node --import tsx nameserver.ts ADDRESS,ADDRESS... PORT ZONES-AS-JSON
// Prints `ready` once it serves. On UDP, truncates answers that do not fit 512 octets (or the client's EDNS size).

import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { createServer } from 'node:net'
import {
  decode,
  encode,
  type Packet,
  AUTHORITATIVE_ANSWER,
  RECURSION_AVAILABLE,
  TRUNCATED_RESPONSE,
} from 'dns-packet'
import { ZoneState, type Zones } from './zones.ts'

const NXDOMAIN = 3
const FORMERR = 1

/** A reply to one query, or undefined if the message is no query. `limit` is the largest size in octets. */
export function answer(
  state: ZoneState,
  query: Buffer,
  limit: number | undefined,
): Buffer | undefined {
  let asked: Packet
  try {
    asked = decode(query)
  } catch {
    return undefined
  }
  const question = asked.questions?.[0]
  const opt = asked.additionals?.find((each) => each.type === 'OPT')
  const base: Packet = {
    type: 'response',
    flags: AUTHORITATIVE_ANSWER | RECURSION_AVAILABLE | ((asked.flags ?? 0) & 0x0110),
    questions: asked.questions ?? [],
    additionals: opt === undefined ? [] : [{ ...opt, udpPayloadSize: 1232, options: [] }],
    ...(asked.id === undefined ? {} : { id: asked.id }),
  }
  if (question === undefined) return encode({ ...base, flags: (base.flags ?? 0) | FORMERR })
  const { exists, answers } = state.answersFor(question.name, question.type)
  const flags = (base.flags ?? 0) | (exists ? 0 : NXDOMAIN)
  const whole = encode({ ...base, flags, answers })
  if (limit === undefined || whole.length <= Math.max(limit, opt?.udpPayloadSize ?? 0)) return whole
  return encode({ ...base, flags: flags | TRUNCATED_RESPONSE })
}

async function serveUdp(state: ZoneState, address: string, port: number): Promise<void> {
  const socket = createSocket({ type: address.includes(':') ? 'udp6' : 'udp4', reuseAddr: true })
  socket.on('message', (query, peer) => {
    const reply = answer(state, query, 512)
    if (reply !== undefined) socket.send(reply, peer.port, peer.address)
  })
  socket.bind(port, address)
  await once(socket, 'listening')
}

async function serveTcp(state: ZoneState, address: string, port: number): Promise<void> {
  const server = createServer((connection) => {
    let pending = Buffer.alloc(0)
    connection.on('error', () => connection.destroy())
    connection.on('data', (bytes: Buffer) => {
      pending = Buffer.concat([pending, bytes])
      while (pending.length >= 2 && pending.length >= 2 + pending.readUInt16BE(0)) {
        const length = pending.readUInt16BE(0)
        const reply = answer(state, pending.subarray(2, 2 + length), undefined)
        pending = pending.subarray(2 + length)
        if (reply === undefined) continue
        const prefix = Buffer.alloc(2)
        prefix.writeUInt16BE(reply.length)
        connection.write(Buffer.concat([prefix, reply]))
      }
    })
  })
  server.listen(port, address)
  await once(server, 'listening')
}

async function main(addresses = '', port = '', zonesJson = ''): Promise<void> {
  const zones = JSON.parse(zonesJson) as Zones
  const state = new ZoneState(zones)
  for (const address of addresses.split(',')) {
    await serveUdp(state, address, Number(port))
    await serveTcp(state, address, Number(port))
  }
  console.log('ready')
}

if (process.argv[1] === import.meta.filename) await main(...process.argv.slice(2))
