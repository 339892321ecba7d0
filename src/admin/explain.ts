// Answers `POST /v1/explain`: why policy allows or denies a question or a connection of an endpoint. The body names the endpoint and the
// question, with the words of `namegate policy explain`. The policy that is in force at the time of the request gives the answer.

import { notInForce, type Fault } from '../core/errors.ts'
import { formatName } from '../core/name.ts'
import { NODE_SCOPE } from '../datapath/prefix-batch.ts'
import { explain } from '../explain/explain.ts'
import type { Asker, Explanation, Question } from '../explain/explanation.ts'
import { readQuestion, type QuestionTexts } from '../explain/read-question.ts'
import type { Endpoint } from '../endpoints/registry.ts'
import { outcomeWords } from '../flows/record/flow-words.ts'
import { askedOfServer } from './asked-server.ts'
import { fieldsOf } from './requests.ts'
import type { AdminState } from './state.ts'
import { noEndpoint } from './unknown-endpoint.ts'

export type ExplainAnswer =
  | { readonly kind: 'ok'; readonly value: Explanation }
  | { readonly kind: 'refused'; readonly status: 400 | 404 | 409; readonly reason: string }

/** How many of the latest flows are searched for the last answer with a name. */
const FLOWS_LOOKED_AT = 4096
const QUESTION = ['ask', 'server', 'protocol', 'name', 'address', 'port'] as const
const FORM =
  'body: expected {"endpoint": NAME} with {"ask": NAME, "server": "ADDRESS:PORT"} or {"name": NAME, "address": ADDRESS, "port": "443/TCP"}'

/** Answers a request. `body` is the value of the request's JSON. */
export function explainBody(state: AdminState, body: unknown): ExplainAnswer {
  const fields = fieldsOf(body, ['endpoint', ...QUESTION])
  if (fields === undefined) return refused(400, FORM)
  const texts = new Map<string, string>()
  for (const [key, value] of fields) {
    if (typeof value !== 'string') return refused(400, FORM)
    texts.set(key, value)
  }
  const name = texts.get('endpoint')
  if (name === undefined) return refused(400, FORM)
  const question: QuestionTexts = Object.fromEntries(QUESTION.map((key) => [key, texts.get(key)]))
  const asked = readQuestion(question)
  if (asked.kind === 'bad') return refused(400, `${asked.field}: ${asked.reason}`)
  const endpoint = state.endpoints.registry.byName(name)
  if (endpoint === undefined) return refused(404, noEndpoint(state, name))
  const asker = askerOf(state, endpoint)
  const { question: judged, notes, refusal } = askedOfServer(state, asked.question)
  const found = explain(state, asker, judged)
  if (found === undefined) return refused(409, `no policy is in force for ${endpoint.name} yet`)
  const more = [
    ...notes,
    ...answerNote(state, endpoint, judged),
    ...inheritedNote(state, endpoint, judged),
  ]
  const decided: Explanation =
    refusal === undefined
      ? unlessClosed(state, asker, judged, found)
      : { ...found, verdict: 'deny', reason: `${refusal}; policy says: ${found.reason}` }
  return { kind: 'ok', value: withState(state, endpoint, decided, more) }
}

function withState(
  state: AdminState,
  endpoint: Endpoint,
  found: Explanation,
  more: readonly string[],
): Explanation {
  const remedy = found.verdict === 'deny' ? undefined : state.forwardingRemedy(endpoint)
  const stuck = `this host does not forward IPv4 packets, so allowed connections hang: ${remedy}`
  const faults = found.verdict === 'allow' ? [] : faultsFor(state, endpoint)
  const own = [...found.notes, ...more, ...stateNotes(state, endpoint)]
  const notes = [...own, ...faults.map(notInForce)]
  return { ...found, notes: remedy === undefined ? notes : [...notes, stuck] }
}

/**
 * The faults of the files whose present text may allow more to the endpoint. Policies in force that do not select the endpoint
 * show that their file is for other endpoints.
 */
function faultsFor(state: AdminState, { id }: Endpoint): readonly Fault[] {
  const own = new Set(state.policies.policiesOf(id).map(({ position }) => position.file))
  const files = [...state.policyFiles()].filter(
    ({ path, policies }) => policies.length === 0 || own.has(path),
  )
  return [...new Set([...files.flatMap(({ faults }) => faults), ...state.faults()])]
}

/** Turns an explanation that allows a name into a refusal, while sources are silent and `sources.then` is deny. */
function unlessClosed(
  { sourceAges, sourcesThen }: AdminState,
  { audited }: Asker,
  { kind }: Question,
  found: Explanation,
): Explanation {
  const silent = sourceAges?.silent ?? []
  const isClosed = sourcesThen === 'deny' && silent.length > 0
  if (!isClosed || kind !== 'ask' || found.verdict !== 'allow') return found
  const why = `every name is refused while ${silent.join(' and ')} are silent (sources.then: deny)`
  return {
    ...found,
    verdict: audited === undefined ? 'deny' : 'audit',
    reason: `${why}; policy says: ${found.reason}`,
  }
}

/** The endpoint as it asks, with the audit setting that allows what policy denies. */
function askerOf(state: AdminState, endpoint: Endpoint): Asker {
  const { id, labels, hook, addresses, audit } = endpoint
  const origin = audit ? (state.auditOf(endpoint).origin ?? 'the endpoint') : undefined
  const audited = state.mode() === 'audit' ? 'the node' : origin
  return { id, labels, hook, addresses, audited }
}

/** A note if addresses of the endpoint's last answer with the name stayed closed. The name cache has no such addresses. */
function answerNote(
  { flows }: AdminState,
  { id }: Endpoint,
  { name }: Question,
): readonly string[] {
  if (name === undefined) return []
  const text = formatName(name)
  const oldest = Math.max(flows.oldest, flows.count - FLOWS_LOOKED_AT)
  for (let number = flows.count - 1; number >= oldest; number--) {
    if (flows.kindOf(number) !== 'answered' || flows.endpointOf(number) !== id) continue
    const flow = flows.get(number)
    if (flow.name !== text) continue
    if (flow.outcome === 'degraded' || flow.outcome === 'held-out') {
      return [`the last answer with ${text} was ${outcomeWords(flow.outcome)}`]
    }
    // An answer without addresses, for example to AAAA, does not contradict the answer before it.
    if (flow.addresses > 0) return []
  }
  return []
}

/** A note if the kernel has an entry of an earlier daemon for the address, and this daemon does not know why. */
function inheritedNote(
  { core: { inherited } }: AdminState,
  { id }: Endpoint,
  question: Question,
): readonly string[] {
  const address = question.kind === 'connect' ? question.address : undefined
  if (address === undefined || inherited.left === 0) return []
  const isLeft = [NODE_SCOPE, id].some((scope) => inherited.find(scope, address) >= 0)
  return isLeft
    ? [
        'an earlier daemon left an entry for this address in the kernel, so the kernel can allow it until state.restore-grace ends',
      ]
    : []
}

/** Names the states in which the datapath does not do what policy says. */
function stateNotes(state: AdminState, { id }: Endpoint): readonly string[] {
  const hook = state.core.datapath.hooks.stateOf(id)
  const isOff = hook.kind === 'waiting' || hook.kind === 'failed'
  return [
    ...(state.mode() === 'bypass' ? ['the mode is bypass: everything passes'] : []),
    ...(isOff ? [`nothing fences the endpoint now: ${hook.reason}`] : []),
  ]
}

function refused(status: 400 | 404 | 409, reason: string): ExplainAnswer {
  return { kind: 'refused', status, reason }
}
