// `namegate ask`: a query through the proxy, shown with what the daemon decided about it. Who asks is this host: the endpoint
// is the one that has the address the query leaves from; with --as it is the endpoint that is named, and the daemon
// itself asks in its name.

import { randomBytes } from 'node:crypto'
import { UnavailableError } from '../../core/errors.ts'
import {
  parseSocketAddress,
  SOCKET_ADDRESS_FORM,
  type SocketAddress,
} from '../../core/socket-address.ts'
import { decodeMessage, encodeQuery, type MessageText } from '../../dns/codec.ts'
import { askServer } from '../ask-server.ts'
import { openClient, type Client } from '../client.ts'
import {
  EXIT_NEGATIVE,
  EXIT_OK,
  EXIT_USAGE,
  toJson,
  type CommandOutput,
  type ParsedArguments,
} from '../command.ts'
import { fieldsOf, listOf, rowsIn, textOf, type Fields } from '../fields.ts'
import { formatFlow } from './flows.ts'
import { cleanCell, formatTable } from '../table.ts'

/** The most that travels without fragments (RFC 9715). */
const UDP_SIZE = 1232
/** Flows among which the decision is looked for. */
const FLOWS_LOOKED_AT = 256
const ANSWERED: readonly string[] = ['NOERROR', 'NXDOMAIN']

export async function runAsk(read: ParsedArguments, output: CommandOutput): Promise<number> {
  const [name, type = 'A', ...rest] = read.positionals
  if (name === undefined || rest.length > 0) return read.wrong('ask needs NAME [TYPE]')
  const given = serverGiven(read)
  if (typeof given === 'string') return read.wrong(given)
  const id = randomBytes(2).readUInt16BE(0)
  const query = encodeQuery({ id, name, type, udpSize: UDP_SIZE })
  if (query.kind === 'bad') {
    output.stderr(`namegate: ${query.reason}\n`)
    return EXIT_USAGE
  }
  const client = await openClient(read)
  const as = read.texts.get('as')
  const overTcp = read.flags.has('tcp')
  const octets =
    as === undefined
      ? await askServer(given ?? (await listenerOf(client)), query.octets, overTcp)
      : await askAs(client, as, query.octets, overTcp, read.texts.get('server'))
  const decoded = messageOf(octets ?? query.octets)
  const decision = await decisionOf(client, decoded, as)
  const isDenied = decision !== undefined && decision['verdict'] === 'deny'
  const message = octets === undefined ? undefined : decoded
  output.stdout(
    read.texts.has('output')
      ? toJson({ ...message, edns: message?.edns ?? null, decision: decision ?? null })
      : formatAnswer(decoded, message, decision),
  )
  return message !== undefined && ANSWERED.includes(message.rcode) && !isDenied
    ? EXIT_OK
    : EXIT_NEGATIVE
}

function messageOf(octets: Uint8Array): MessageText {
  const decoded = decodeMessage(octets, 0, octets.length)
  if (decoded.kind === 'ok') return decoded.message
  throw new UnavailableError(`The answer is malformed: ${decoded.reason}`)
}

/** What --server says, or what is wrong with it. */
function serverGiven({ texts }: ParsedArguments): SocketAddress | string | undefined {
  const given = texts.get('server')
  if (given === undefined) return undefined
  const server = parseSocketAddress(given)
  return server ?? `--server: found ${JSON.stringify(given)}, expected ${SOCKET_ADDRESS_FORM}`
}

/** The answer that an endpoint would get; undefined: it would get none (`deny-response: drop`). */
async function askAs(
  client: Client,
  endpoint: string,
  query: Uint8Array,
  overTcp: boolean,
  server: string | undefined,
): Promise<Uint8Array | undefined> {
  const body = {
    endpoint,
    query: Buffer.from(query).toString('base64'),
    protocol: overTcp ? 'TCP' : 'UDP',
    ...(server === undefined ? {} : { server }),
  }
  const { answer } = fieldsOf(await client.get('/v1/ask', { body }))
  return typeof answer === 'string' ? Buffer.from(answer, 'base64') : undefined
}

async function listenerOf(client: Client): Promise<SocketAddress> {
  const status = fieldsOf(await client.get('/v1/status'))
  // To one of mode tproxy nobody can send.
  const listeners = listOf(status['listeners']).map(textOf)
  const first = listeners.find((text) => !text.endsWith(' (tproxy)'))?.replace(/ .*/, '')
  const listener = first === undefined ? undefined : parseSocketAddress(first)
  if (listener === undefined) throw new UnavailableError('The daemon has no listener to ask')
  return isUnspecified(listener) ? loopback(listener) : listener
}

function isUnspecified({ octets }: SocketAddress): boolean {
  return octets.every((octet) => octet === 0)
}

/** A listener on every address has this host's own too. */
function loopback({ family, port }: SocketAddress): SocketAddress {
  const octets = new Uint8Array(16)
  if (family === 4) octets.set([127, 0, 0, 1])
  else octets[15] = 1
  return { family, octets, port }
}

/** The latest flow about the question; undefined when no daemon can be asked. */
async function decisionOf(
  client: Client,
  message: MessageText,
  endpoint: string | undefined,
): Promise<Fields | undefined> {
  const [question] = message.questions
  if (question === undefined) return undefined
  const name = question.name === '.' ? '.' : question.name.replace(/\.$/, '').toLowerCase()
  let found: Fields | undefined
  try {
    const parts = await client.open(`/v1/flows?last=${FLOWS_LOOKED_AT}`, { timeoutMs: 2000 })
    for await (const flow of rowsIn(parts)) {
      const isOf = endpoint === undefined || flow['endpoint'] === endpoint
      if (isOf && flow['name'] === name && flow['type'] === question.type) found = flow
    }
  } catch (error) {
    if (!(error instanceof UnavailableError)) throw error
  }
  return found
}

function formatAnswer(
  { questions }: MessageText,
  answer: MessageText | undefined,
  decision: Fields | undefined,
): string {
  const asked = questions.map(({ name, type }) => `${name} ${type}`).join(', ')
  const why = decision === undefined ? 'not known: no daemon tells' : formatFlow(decision)
  const what = answer === undefined ? 'no answer\n' : formatMessage(answer)
  return `${cleanCell(asked)}: ${what}decision: ${why}\n`
}

function formatMessage({ rcode, flags, answers, authorities, edns }: MessageText): string {
  const records = [...answers, ...authorities].map((record) => [
    record.name,
    String(record.ttl),
    record.type,
    record.data,
  ])
  const errors = (edns?.errors ?? []).map((error) => `EDE: ${error}\n`).join('')
  const table = records.length === 0 ? '' : formatTable(['NAME', 'TTL', 'TYPE', 'DATA'], records)
  return `${rcode} (${flags.join(' ')})\n${table}${errors}`
}
