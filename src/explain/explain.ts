// `explain` says why an endpoint can or cannot do something. It answers one question from the state in force, and changes nothing. The
// daemon uses it for `POST /v1/explain`. The command line uses it on a core that it made from files. The cost is one look at each rule
// of the endpoint's policies. For a denied question it also looks at rules of other policies, to find the nearest one.

import { containsPrefix, formatAddress, isLoopback, type Prefix, widthOf } from '../core/ip.ts'
import { formatName } from '../core/name.ts'
import { formatPort, TCP, UDP } from '../core/protocol.ts'
import type { CoreState } from '../enforcement/core-state.ts'
import { MAY_ASK } from '../enforcement/dns-verdicts.ts'
import type { PolicyControl } from '../enforcement/policy-control.ts'
import type { SharedRules } from '../enforcement/shared-rules.ts'
import { addressRemedy } from '../policy/allow-text.ts'
import { everyPortNote, lineForName, permittingLines } from './allow-lists.ts'
import { decideAsking, otherProtocolNote, reasonOfAsking, unaskedNote } from './ask.ts'
import { explainConnecting } from './connecting.ts'
import type { Asker, Explanation, Question } from './explanation.ts'
import { nearestAsking } from './nearest.ts'
import {
  auditWords,
  defaultOf,
  deniedVerdict,
  explained,
  numbersOf,
  peerOf,
  sorted,
  unselectedNote,
} from './rules.ts'

export interface ExplainParts {
  readonly core: CoreState
  readonly policies: PolicyControl
}

/** Answers a question. Returns undefined for an endpoint that has no rules in force yet. */
export function explain(
  { core, policies }: ExplainParts,
  asker: Asker,
  question: Question,
): Explanation | undefined {
  const shared = policies.inForceOf(asker.id)
  if (shared === undefined) return undefined
  if (question.kind === 'ask') return explainAsking({ core, policies }, asker, shared, question)
  const { address } = question
  const inside = address && insideAs(asker, address)
  if (inside !== undefined) return unjudged(shared, question, inside)
  const found = explainConnecting({ core, shared, all: policies.policies }, asker, question)
  const { name } = question
  if (name === undefined || found.verdict !== 'allow') return found
  // An address has the labels of a name only after an answer, which the endpoint cannot get without asking.
  const isAskable = ([UDP, TCP] as const).some(
    (protocol) => policies.dnsVerdicts.judge(asker.id, protocol, name, 0) === MAY_ASK,
  )
  return isAskable ? found : { ...found, notes: [...found.notes, ...unaskedNote(shared, name)] }
}

/** Returns which address of its own the endpoint asks about. Packets to it do not pass the endpoint's interface. */
function insideAs({ hook, addresses }: Asker, asked: Prefix): string | undefined {
  if (hook.kind !== 'interface') return undefined
  const { family, octets } = asked
  const place = formatAddress(family, octets)
  if (isLoopback(family, octets)) return `${place} is loopback`
  const isOwn = addresses.some(
    (each) => each.length === widthOf(each.family) && containsPrefix(each, asked),
  )
  return isOwn ? `${place} is the workload's own address` : undefined
}

function unjudged(
  shared: SharedRules,
  { protocol, port }: Extract<Question, { readonly kind: 'connect' }>,
  inside: string,
): Explanation {
  return {
    verdict: 'allow',
    reason: `${formatPort(protocol, port)} is not judged: ${inside}, whose packets stay inside the workload's network namespace`,
    rules: [],
    selectors: [],
    identities: [],
    labels: [],
    default: defaultOf(shared),
    nearest: null,
    add: null,
    notes: [],
  }
}

function explainAsking(
  { core, policies }: ExplainParts,
  asker: Asker,
  shared: SharedRules,
  question: Extract<Question, { readonly kind: 'ask' }>,
): Explanation {
  const { server } = question
  const peer = server === undefined ? undefined : peerOf(core, asker, server.address, undefined)
  const asking = { core, verdicts: policies.dnsVerdicts, shared, asker, question, peer }
  const decision = decideAsking(asking)
  const isAudited = decision.verdict === 'audit'
  const denied = decision.verdict !== 'allow' && !isAudited
  const isByDefault =
    decision.rules.length === 0 && (decision.verdict === 'name-denied' || isAudited)
  const add = isByDefault ? lineForName(shared.compiled.policies, question.name) : null
  return {
    verdict: denied ? deniedVerdict(asker) : isAudited ? 'audit' : 'allow',
    reason: reasonOfAsking(decision, shared, question) + auditWords(asker, denied),
    rules: decision.rules
      .flatMap((origin) => permittingLines(origin, question.name))
      .map(explained),
    selectors: sorted(decision.patterns),
    identities: numbersOf([peer]),
    labels: peer?.labels ?? [],
    default: defaultOf(shared),
    nearest:
      decision.verdict === 'name-denied' || isAudited
        ? nearestAsking(
            { own: shared.compiled.policies, all: policies.policies },
            asker.labels,
            question,
          )
        : null,
    add,
    notes: [
      ...unselectedNote(shared),
      ...otherProtocolNote(asking),
      ...everyPortNote(add),
      ...(isByDefault
        ? [...unaskedNote(shared, question.name), ...addressNote(question.name)]
        : []),
    ],
  }
}

function addressNote(name: Uint8Array): readonly string[] {
  const remedy = addressRemedy(formatName(name))
  return remedy === undefined ? [] : [remedy]
}
