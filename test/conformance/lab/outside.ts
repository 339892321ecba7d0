// A host beyond the node asks for names over UDP and TCP, and checks the replies: at the address where clients ask, at the node's own
// address, and at the port of a transparent listener.

import assert from 'node:assert/strict'
import { TcpClient, UdpClient, type Asked } from './clients.ts'
import { localAnswer } from './replies.ts'
import type { Mode, World } from './world.ts'
import { DNS_4 } from '../../support/labs/lab-pod.ts'
import { mkMessage, opt, QUERY_FLAGS, type MkMessage } from '../../support/messages.ts'

const NODE = '192.0.2.1'
/** Where a host outside can reach the listener itself. */
const REACHED: Readonly<Record<Mode, Asked>> = {
  explicit: { address: '10.20.1.1', port: 53 },
  tproxy: { address: NODE, port: 10_053 },
  redirect: { address: NODE, port: 5300 },
}
const QUIET_MS = 1500

export async function askedFromOutside(world: World): Promise<void> {
  const name = world.name()
  const query: MkMessage = {
    id: 9,
    flags: QUERY_FLAGS,
    questions: [{ name }],
    additionals: [opt()],
  }
  const octets = mkMessage(query)
  const places = [REACHED[world.mode], { address: NODE, port: 53 }]
  const got: Buffer[] = []
  const quiet = new Promise((resolve) => setTimeout(resolve, QUIET_MS))
  for (const place of places) {
    const udp = await UdpClient.open(world.outside, DNS_4, place)
    udp.send(octets)
    const opening = TcpClient.open(world.outside, DNS_4, place)
    const tcp = await opening.catch(() => undefined)
    tcp?.send(octets)
    await quiet
    got.push(...udp.inbox.items.map((each) => each.octets), ...(tcp?.inbox.items ?? []))
    udp.close()
    tcp?.close()
  }
  const refusal = Buffer.from(localAnswer(query, { rcode: 5, ede: 18 })).toString('hex')
  for (const each of got) assert.equal(each.toString('hex'), refusal, 'only a refusal')
  assert.deepEqual(world.upstream.asked(name).items, [], 'no query was forwarded')
}
