// What recorded flows need, judged by the policies that are there already: by the daemon's own code, on a node without daemon.
// Peers that the flows show with labels are made known to it, so that rules by label count.

import { formatPrefix, parseAddress } from '../../core/ip.ts'
import type { Explanation } from '../../explain/explanation.ts'
import { readQuestion, type QuestionTexts } from '../../explain/read-question.ts'
import type { Needs } from '../../suggest/needs.ts'
import { peerLabels, type Judgement, type SuggestOptions } from '../../suggest/suggest.ts'
import { OfflineNode, type OfflineInput } from './offline-node.ts'

type Judges = Pick<SuggestOptions, 'judgeAsked' | 'judgeReached'>

export const WANTS_ALL: Judges = { judgeAsked: () => 'wanted', judgeReached: () => 'wanted' }

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
    // Records of questions do not say over what they came, and a resolver may ask over both.
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

/** What a rule denies no other can allow. */
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
