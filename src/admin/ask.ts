// Answers `POST /v1/ask`: asks a DNS query in the name of an endpoint of this node, and returns the answer that the endpoint would get.
// Addresses of the answer are learned as if the endpoint had asked.

import { TCP, UDP } from '../core/protocol.ts'
import { parseSocketAddress, SOCKET_ADDRESS_FORM } from '../core/socket-address.ts'
import { fieldsOf } from './requests.ts'
import type { AdminState } from './state.ts'
import { noEndpoint } from './unknown-endpoint.ts'

/** Octets of a query: at least header and question, at most the size of a UDP query without EDNS. */
const QUERY_MIN = 17
const QUERY_MAX = 512
const PROTOCOLS: ReadonlyMap<unknown, number> = new Map([
  [undefined, UDP],
  ['UDP', UDP],
  ['TCP', TCP],
])
const FORM =
  'body: expected {"endpoint": NAME, "query": BASE64, "protocol": "UDP" | "TCP"} and, where the endpoint chooses its server, "server": "ADDRESS:PORT"'

export type AskAnswer =
  | { readonly kind: 'ok'; readonly value: { readonly answer: string | null } }
  | { readonly kind: 'refused'; readonly status: 400 | 404 | 503; readonly reason: string }

export async function askBody(state: AdminState, body: unknown): Promise<AskAnswer> {
  const fields = fieldsOf(body, ['endpoint', 'query', 'protocol', 'server'])
  const [name, text, at] = ['endpoint', 'query', 'server'].map((key) => fields?.get(key))
  const protocol = PROTOCOLS.get(fields?.get('protocol'))
  if (typeof name !== 'string' || typeof text !== 'string' || protocol === undefined) {
    return refused(400, FORM)
  }
  const query = Buffer.from(text, 'base64')
  if (query.length < QUERY_MIN || query.length > QUERY_MAX) {
    return refused(400, `query: expected ${QUERY_MIN} to ${QUERY_MAX} octets`)
  }
  const server = typeof at === 'string' ? parseSocketAddress(at) : undefined
  if (at !== undefined && server === undefined) {
    return refused(400, `server: expected ${SOCKET_ADDRESS_FORM}`)
  }
  const endpoint = state.endpoints.registry.byName(name)
  if (endpoint === undefined) return refused(404, noEndpoint(state, name))
  return await new Promise((done) => {
    const isAsked = state.ask({ endpoint: endpoint.id, query, protocol, server }, (answer) => {
      done({ kind: 'ok', value: { answer: answer === undefined ? null : inBase64(answer, query) } })
    })
    if (!isAsked) done(refused(503, 'too many questions in the name of endpoints wait: try again'))
  })
}

/** The answer in base64, with the message id of the query. */
function inBase64(answer: Uint8Array, query: Uint8Array): string {
  const octets = Buffer.from(answer)
  octets.set(query.subarray(0, 2))
  return octets.toString('base64')
}

function refused(status: 400 | 404 | 503, reason: string): AskAnswer {
  return { kind: 'refused', status, reason }
}
