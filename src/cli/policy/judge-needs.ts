// `judgesOf` makes functions that judge the needs of recorded flows by existing policies. The functions ask an OfflineNode, which has the
// daemon's own code. The OfflineNode knows the labelled peers of the flows as resources, so that rules that select peers by label apply to
// them.

import { formatPrefix, parseAddress } from '../../core/ip.ts'
import type { Explanation } from '../../explain/explanation.ts'
import { readQuestion, type QuestionTexts } from '../../explain/read-question.ts'
import type { Needs } from '../../suggest/needs.ts'
import { peerLabels, type Judgement, type SuggestOptions } from '../../suggest/suggest.ts'
import { OfflineNode, type OfflineInput } from './offline-node.ts'

type Judges = Pick<SuggestOptions, 'judgeAsked' | 'judgeReached'>

/** The judges without existing policies: every need is wanted. */
export const WANTS_ALL: Judges = { judgeAsked: () => 'wanted', judgeReached: () => 'wanted' }

/** Returns judges for these needs. `world`: the existing policies, and the known endpoints and resources. */
export function judgesOf(world: Omit<OfflineInput, 'askers'>, needs: readonly Needs[]): Judges {
  const askers = needs.map(({ labels }) => labels)
  const resources = [...world.resources, ...peersIn(world, needs)]
  const node = new OfflineNode({ ...world, resources, askers })
  const judge = (labels: readonly string[], texts: QuestionTexts): Judgement => {
    const read = readQuestion(texts)
    if (read.kind === 'bad') return 'wanted'
    return judgementOf(node.explain(labels, read.question))
  }
  return {
    // A flow of a question does not contain the protocol, and a resolver can use both protocols. So a name is `allowed` only if policy
    // allows it over UDP and over TCP.
    judgeAsked: (labels, ask) => {
      const judged = ['UDP', 'TCP'].map((protocol) => judge(labels, { ask, protocol }))
      return judged.find((each) => each !== 'allowed') ?? 'allowed'
    },
    judgeReached: (labels, { address, port, protocol, names }) => {
      const to = { address, port: `${port}/${protocol}` }
      const judged = [to, ...names.map((name) => ({ ...to, name }))].map((texts) =>
        judge(labels, texts),
      )
      return (
        judged.find((each) => each === 'denied') ??
        judged.find((each) => each === 'allowed') ??
        'wanted'
      )
    },
  }
}

/** Returns the judgement for an explanation. `denied` means that a deny rule decided, because no added rule can beat a deny rule. */
function judgementOf({ verdict, rules }: Explanation): Judgement {
  if (verdict === 'allow') return 'allowed'
  return rules.some(({ action }) => action === 'deny') ? 'denied' : 'wanted'
}

function peersIn(
  { endpoints, resources }: Omit<OfflineInput, 'askers'>,
  needs: readonly Needs[],
): OfflineInput['resources'] {
  const given = new Set(
    [...endpoints, ...resources].flatMap(({ addresses }) => addresses.map(formatPrefix)),
  )
  const found = new Map<string, OfflineInput['resources'][number]>()
  for (const { address, labels } of needs.flatMap(({ reached }) => [...reached])) {
    const prefix = parseAddress(address)
    const own = peerLabels({ labels })
    if (prefix === undefined || own.length === 0 || given.has(formatPrefix(prefix))) continue
    found.set(address, { name: address, addresses: [prefix], labels: own })
  }
  return [...found.values()]
}
