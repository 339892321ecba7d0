// A stand-in for dig on machines without it: the few options that the demo uses, in dig's own form of output.

import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { decode, encode, RECURSION_DESIRED, type Answer, type DecodedPacket } from 'dns-packet'

/** One UDP query per name; `args` are names, `+short`, `+answer` or `+comments`. */
export async function ownDig(port: number, args: readonly string[]): Promise<string> {
  const names = args.filter((arg) => !arg.startsWith('+'))
  const lines: string[] = []
  for (const name of names) {
    const reply = await ask(port, name)
    if (args.includes('+short')) lines.push(...(reply.answers ?? []).map(dataOf))
    else if (args.includes('+answer')) lines.push(...(reply.answers ?? []).map(lineOf))
    else lines.push(...commentsOf(reply))
  }
  return lines.join('\n')
}

async function ask(port: number, name: string): Promise<DecodedPacket> {
  const socket = createSocket('udp4')
  const query = encode({
    type: 'query',
    id: 1,
    flags: RECURSION_DESIRED,
    questions: [{ type: 'A', name }],
    additionals: [
      {
        type: 'OPT',
        name: '.',
        udpPayloadSize: 1232,
        extendedRcode: 0,
        ednsVersion: 0,
        flags: 0,
        flag_do: false,
        options: [],
      },
    ],
  })
  try {
    socket.send(query, port, '127.0.0.1')
    const [reply] = (await once(socket, 'message', { signal: AbortSignal.timeout(2000) })) as [
      Buffer,
    ]
    return decode(reply)
  } finally {
    socket.close()
  }
}

function dataOf(answer: Answer): string {
  return 'data' in answer && typeof answer.data === 'string' ? answer.data : ''
}

function lineOf(answer: Answer): string {
  const ttl = 'ttl' in answer ? (answer.ttl ?? 0) : 0
  return `${answer.name}.\t${ttl}\tIN\t${answer.type}\t${dataOf(answer)}`
}

/** Only the codes that the demo meets by name (RFC 1035 4.1.1, RFC 8914 4). */
function commentsOf(reply: DecodedPacket): string[] {
  const rcode = (reply.flags ?? 0) & 15
  const lines = [
    `;; ->>HEADER<<- opcode: QUERY, status: ${rcode === 5 ? 'REFUSED' : `RCODE ${rcode}`}, id: 1`,
  ]
  for (const record of reply.additionals ?? []) {
    if (record.type !== 'OPT') continue
    for (const option of record.options as readonly RawOption[]) {
      if (option.code !== 15 || option.data === undefined) continue
      lines.push(`; EDE: ${option.data.readUInt16BE(0)}: (${option.data.toString('utf8', 2)})`)
    }
  }
  return lines
}

/** An EDNS option that dns-packet does not know, which it hands over as octets. */
interface RawOption {
  readonly code: number
  readonly data?: Buffer
}
