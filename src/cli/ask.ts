// `namegate ask`: a query through the proxy from this host, shown with what the daemon decided about it. Who
// asks is this host: the endpoint is the one that has the address the query leaves from.

import { randomBytes } from 'node:crypto'
import { UnavailableError } from '../core/errors.ts'
import {
  parseSocketAddress,
  SOCKET_ADDRESS_FORM,
  type SocketAddress,
} from '../core/socket-address.ts'
import { decodeMessage, encodeQuery, type MessageText } from '../dns/codec.ts'
import { askServer } from './ask-server.ts'
import { openClient, type Client } from './client.ts'
import {
  EXIT_NEGATIVE,
  EXIT_OK,
  EXIT_USAGE,
  readArguments,
  toJson,
  usageError,
  type CommandOutput,
  type ParsedArguments,
} from './command.ts'
import { fieldsOf, listOf, rowsIn, textOf, type Fields } from './fields.ts'
import { formatFlow } from './flows.ts'
import { cleanCell, formatTable } from './table.ts'

const HELP = `Usage: namegate ask NAME [TYPE] [--server ADDRESS:PORT] [--tcp] [-o json] [--config FILE | --socket PATH]

Asks a name through the proxy, from this host, and shows the answer and the decision. TYPE is A by default. NAME
may hold \\DDD for odd octets.

Options:
  --server A:P      ask there; default: the daemon's first listener
  --tcp             over TCP
  --as ENDPOINT     not built yet
  -o json           one JSON object on stdout
  --config FILE     config that names the daemon's socket
  --socket PATH     the daemon's socket
  -h, --help        this text

Exit codes: 0 answered, 1 denied or failed, 2 wrong use, 3 no daemon or no answer.

Examples:
  namegate ask www.example.com
  namegate ask example.com AAAA --tcp --server 127.0.0.1:5300
`

/** The most that travels without fragments (RFC 9715). */
const UDP_SIZE = 1232
/** Flows among which the decision is looked for. */
const FLOWS_LOOKED_AT = 256
const ANSWERED: readonly string[] = ['NOERROR', 'NXDOMAIN']

export async function askCommand(args: readonly string[], output: CommandOutput): Promise<number> {
  const read = readArguments(args, HELP, output, {
    server: { type: 'string' },
    tcp: { type: 'boolean' },
    as: { type: 'string' },
    socket: { type: 'string' },
  })
  if (typeof read === 'number') return read
  const [name, type = 'A', ...rest] = read.positionals
  if (name === undefined || rest.length > 0)
    return usageError('ask needs NAME [TYPE]', HELP, output)
  if (read.texts.has('as')) return usageError('--as is not built yet', HELP, output)
  const id = randomBytes(2).readUInt16BE(0)
  const query = encodeQuery({ id, name, type, udpSize: UDP_SIZE })
  if (query.kind === 'bad') {
    output.stderr(`namegate: ${query.reason}\n`)
    return EXIT_USAGE
  }
  const client = await openClient(read)
  const server = await serverOf(read, client)
  if (typeof server === 'string') return usageError(server, HELP, output)
  const overTcp = read.flags.has('tcp')
  const octets = await askServer(server, query.octets, overTcp)
  const decoded = decodeMessage(octets, 0, octets.length)
  if (decoded.kind === 'bad')
    throw new UnavailableError(`The answer is malformed: ${decoded.reason}`)
  const decision = await decisionOf(client, decoded.message)
  const { message } = decoded
  output.stdout(
    read.texts.has('output')
      ? toJson({ ...message, edns: message.edns ?? null, decision: decision ?? null })
      : formatAnswer(message, decision),
  )
  const denied = decision !== undefined && decision['verdict'] === 'deny'
  return ANSWERED.includes(message.rcode) && !denied ? EXIT_OK : EXIT_NEGATIVE
}

/** Where to ask, or what is wrong with the option. */
async function serverOf(
  { texts }: ParsedArguments,
  client: Client,
): Promise<SocketAddress | string> {
  const given = texts.get('server')
  if (given !== undefined) {
    const server = parseSocketAddress(given)
    return server ?? `--server: found ${JSON.stringify(given)}, expected ${SOCKET_ADDRESS_FORM}`
  }
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
async function decisionOf(client: Client, message: MessageText): Promise<Fields | undefined> {
  const [question] = message.questions
  if (question === undefined) return undefined
  const name = question.name === '.' ? '.' : question.name.replace(/\.$/, '').toLowerCase()
  let found: Fields | undefined
  try {
    const parts = await client.open(`/v1/flows?last=${FLOWS_LOOKED_AT}`, { timeoutMs: 2000 })
    for await (const flow of rowsIn(parts)) {
      if (flow['name'] === name && flow['type'] === question.type) found = flow
    }
  } catch (error) {
    if (!(error instanceof UnavailableError)) throw error
  }
  return found
}

function formatAnswer(message: MessageText, decision: Fields | undefined): string {
  const { rcode, flags, questions, answers, authorities, edns } = message
  const asked = questions.map(({ name, type }) => `${name} ${type}`).join(', ')
  const records = [...answers, ...authorities].map((record) => [
    record.name,
    String(record.ttl),
    record.type,
    record.data,
  ])
  const errors = (edns?.errors ?? []).map((error) => `EDE: ${error}\n`).join('')
  const table = records.length === 0 ? '' : formatTable(['NAME', 'TTL', 'TYPE', 'DATA'], records)
  const why = decision === undefined ? 'not known: no daemon tells' : formatFlow(decision)
  return `${cleanCell(asked)}: ${rcode} (${flags.join(' ')})\n${table}${errors}decision: ${why}\n`
}
