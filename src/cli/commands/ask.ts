// `runAsk` runs `namegate ask`. The command sends a query through the proxy, and prints the answer with the daemon's decision. This host
// sends the query, so the daemon treats it as a query of the endpoint that has the source address of the query. With --as NAME, the daemon
// makes the query itself, and treats it as a query of endpoint NAME. A daemon that only intercepts queries, and has one endpoint, does the
// same without --as.

import { randomBytes } from 'node:crypto'
import { UnavailableError } from '../../core/errors.ts'
import {
  formatSocketAddress,
  parseSocketAddress,
  SOCKET_ADDRESS_FORM,
  type SocketAddress,
} from '../../core/socket-address.ts'
import { decodeMessage, encodeQuery, type MessageText } from '../../dns/codec.ts'
import { askedFault } from '../../explain/read-question.ts'
import { askServer } from '../ask-server.ts'
import type { OwnAnswer, Status } from '../../client/api-types.ts'
import type { Client } from '../../client/client.ts'
import { openClient } from '../client.ts'
import {
  EXIT_NEGATIVE,
  EXIT_OK,
  EXIT_USAGE,
  toJson,
  type CommandOutput,
  type ParsedArguments,
} from '../command.ts'
import { faultNotes } from '../file-faults.ts'
import { listOf, numberOf, textOf, type PartOf } from '../fields.ts'
import type { FlowFields } from '../flows/flow-fields.ts'
import { formatFlow } from '../flows/flow-text.ts'
import { endpointNames, onlyEndpoint } from '../only-endpoint.ts'
import { cleanCell, formatTable } from '../table.ts'

/** The size of the largest answer over UDP, in octets, so that packets are not fragmented (RFC 9715). */
const UDP_SIZE = 1232
/** How many of the latest flows are searched for the decision. */
const FLOWS_LOOKED_AT = 256
const CUT_OFF = 'the answer is cut off: --tcp asks for all of it\n'
const ANSWERED: readonly string[] = ['NOERROR', 'NXDOMAIN']

export async function runAsk(read: ParsedArguments, output: CommandOutput): Promise<number> {
  const [name, type = 'A', ...rest] = read.positionals
  if (name === undefined || rest.length > 0) return read.wrong('ask needs NAME [TYPE]')
  const fault = askedFault(name)
  if (fault !== undefined) return read.wrong(`NAME: found ${JSON.stringify(name)}${fault}`)
  const given = serverGiven(read)
  if (typeof given === 'string') return read.wrong(given)
  const id = randomBytes(2).readUInt16BE(0)
  const query = encodeQuery({ id, name, type, udpSize: UDP_SIZE })
  if (query.kind === 'bad') {
    output.stderr(`namegate: ${query.reason}\n`)
    return EXIT_USAGE
  }
  const client = await openClient(read)
  const as =
    read.texts.get('as') ?? (given === undefined ? await unreachable(client, output) : undefined)
  const overTcp = read.flags.has('tcp')
  const before = await lastFlow(client)
  const octets =
    as === undefined
      ? await askServer(given ?? (await listenerOf(client)), query.octets, overTcp)
      : await askAs(client, as, query.octets, overTcp, read.texts.get('server'))
  const decoded = messageOf(octets ?? query.octets)
  const decision = await decisionOf(client, { message: decoded, endpoint: as, before })
  const isDenied = decision !== undefined && decision.verdict === 'deny'
  const message = octets === undefined ? undefined : decoded
  const protocol = overTcp ? 'TCP' : 'UDP'
  if (read.texts.has('output')) {
    const edns = message?.edns ?? null
    output.stdout(toJson({ ...message, protocol, edns, decision: decision ?? null }))
  } else {
    const server = as === undefined ? given : undefined
    const why = decision === undefined ? await noDecision(client, server) : formatFlow(decision)
    output.stdout(`${formatAnswer(decoded, message, protocol)}decision: ${why}\n`)
    if (isDenied) output.stderr(await faultNotes(client))
  }
  return message !== undefined && ANSWERED.includes(message.rcode) && !isDenied
    ? EXIT_OK
    : EXIT_NEGATIVE
}

function messageOf(octets: Uint8Array): MessageText {
  const decoded = decodeMessage(octets, 0, octets.length)
  if (decoded.kind === 'ok') return decoded.message
  throw new UnavailableError(`The answer is malformed: ${decoded.reason}`)
}

/** Returns the server of --server, or undefined without this option. Returns the fault as text if the value is wrong. */
function serverGiven({ texts }: ParsedArguments): SocketAddress | string | undefined {
  const given = texts.get('server')
  if (given === undefined) return undefined
  const server = parseSocketAddress(given)
  return server ?? `--server: found ${JSON.stringify(given)}, expected ${SOCKET_ADDRESS_FORM}`
}

/** Returns the answer that an endpoint would receive. Undefined if it would receive none (`deny-response: drop`). */
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
  const { value } = await client.request('POST /v1/ask', { body })
  const { answer }: PartOf<OwnAnswer> = value
  return typeof answer === 'string' ? Buffer.from(answer, 'base64') : undefined
}

/**
 * Returns the only endpoint of a daemon whose listeners take only intercepted queries, because a query of this host would not be one.
 * Undefined for other daemons.
 */
async function unreachable(client: Client, output: CommandOutput): Promise<string | undefined> {
  const status: PartOf<Status> = (await client.request('GET /v1/status')).value
  const listeners = listOf(status.listeners).map(textOf)
  if (!listeners.every((text) => / \((?:tproxy|redirect)\)$/.test(text))) return undefined
  const names = await endpointNames(client)
  return names.length === 1 ? await onlyEndpoint(client, output) : undefined
}

async function listenerOf(client: Client): Promise<SocketAddress> {
  const status: PartOf<Status> = (await client.request('GET /v1/status')).value
  // A listener of mode tproxy does not answer queries that are sent to its own address.
  const listeners = listOf(status.listeners).map(textOf)
  const first = listeners.find((text) => !text.endsWith(' (tproxy)'))?.replace(/ .*/, '')
  const listener = first === undefined ? undefined : parseSocketAddress(first)
  if (listener === undefined)
    throw new UnavailableError(
      'The daemon has no listener that takes queries of this host: give --as ENDPOINT, or --server ADDRESS:PORT',
    )
  return isUnspecified(listener) ? loopback(listener) : listener
}

function isUnspecified({ octets }: SocketAddress): boolean {
  return octets.every((octet) => octet === 0)
}

/** Returns this host's loopback address, where a listener on every address can be reached. */
function loopback({ family, port }: SocketAddress): SocketAddress {
  const octets = new Uint8Array(16)
  if (family === 4) octets.set([127, 0, 0, 1])
  else octets[15] = 1
  return { family, octets, port }
}

/** A query that was answered, and the number of the last flow before it. */
interface Asked {
  readonly message: MessageText
  readonly endpoint: string | undefined
  readonly before: number
}

/** Returns the number of the last flow. -1 without flows, and if no daemon answers. */
async function lastFlow(client: Client): Promise<number> {
  let found = -1
  try {
    for await (const flow of client.rows('GET /v1/flows', { query: { last: 1 }, timeoutMs: 2000 }))
      found = numberOf(flow.number)
  } catch (error) {
    if (!(error instanceof UnavailableError)) throw error
  }
  return found
}

/** Returns the latest flow about the question since it was asked. Undefined if there is no such flow, or if no daemon answers. */
async function decisionOf(
  client: Client,
  { message, endpoint, before }: Asked,
): Promise<FlowFields | undefined> {
  const [question] = message.questions
  if (question === undefined) return undefined
  const name = question.name === '.' ? '.' : question.name.replace(/\.$/, '').toLowerCase()
  let found: FlowFields | undefined
  try {
    const query = { last: FLOWS_LOOKED_AT }
    for await (const flow of client.rows('GET /v1/flows', { query, timeoutMs: 2000 })) {
      const { endpoint: asker, name: asked, type, number }: FlowFields = flow
      const isAsker = endpoint === undefined || asker === endpoint
      const isLater = numberOf(number) > before
      if (isAsker && isLater && asked === name && type === question.type) found = flow
    }
  } catch (error) {
    if (!(error instanceof UnavailableError)) throw error
  }
  return found
}

/** Says why the daemon recorded no decision about a query that was sent to `server`. */
async function noDecision(client: Client, server: SocketAddress | undefined): Promise<string> {
  let status: PartOf<Status>
  try {
    status = (await client.request('GET /v1/status', { timeoutMs: 2000 })).value
  } catch (error) {
    if (!(error instanceof UnavailableError)) throw error
    return 'not known: no daemon answers'
  }
  const listeners = listOf(status.listeners).map((text) => textOf(text).replace(/ .*/, ''))
  const isListener = ({ port, octets }: SocketAddress): boolean =>
    listeners
      .map(parseSocketAddress)
      .some(
        (at) =>
          at !== undefined &&
          at.port === port &&
          (isUnspecified(at) || Buffer.compare(at.octets, octets) === 0),
      )
  if (server === undefined || isListener(server)) return 'not known: the daemon recorded none'
  return `none: ${formatSocketAddress(server)} is no listener of this daemon (${listeners.join(', ')})`
}

function formatAnswer(
  { questions }: MessageText,
  answer: MessageText | undefined,
  protocol: 'TCP' | 'UDP',
): string {
  const asked = questions.map(({ name, type }) => `${name} ${type}`).join(', ')
  const what =
    answer === undefined ? `no answer over ${protocol}\n` : formatMessage(answer, protocol)
  return `${cleanCell(asked)}: ${what}`
}

function formatMessage(
  { rcode, flags, answers, authorities, edns }: MessageText,
  protocol: 'TCP' | 'UDP',
): string {
  const records = [...answers, ...authorities].map((record) => [
    record.name,
    String(record.ttl),
    record.type,
    record.data,
  ])
  const errors = (edns?.errors ?? []).map((error) => `EDE: ${error}\n`).join('')
  const table = records.length === 0 ? '' : formatTable(['NAME', 'TTL', 'TYPE', 'DATA'], records)
  const cut = flags.includes('tc') && protocol === 'UDP' ? CUT_OFF : ''
  return `${rcode} over ${protocol} (${flags.join(' ')})\n${cut}${table}${errors}`
}
