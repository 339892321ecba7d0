// Questions to `explain` in short form: names, addresses and ports as text.

import assert from 'node:assert/strict'
import { UDP, type DnsProtocol } from '../../../src/core/protocol.ts'
import { explain } from '../../../src/explain/explain.ts'
import type { Asker, Explanation, Question } from '../../../src/explain/explanation.ts'
import { prefixOf, wireOf, type Node } from './node.ts'

/** `443`, `53/17`. */
export function connect(
  to: { readonly name?: string; readonly address?: string },
  ports = '443',
): Question {
  const [port = 0, protocol = 6] = ports.split('/').map(Number)
  return {
    kind: 'connect',
    protocol,
    port,
    ...(to.name === undefined ? {} : { name: wireOf(to.name) }),
    ...(to.address === undefined ? {} : { address: prefixOf(to.address) }),
  }
}

export function ask(
  name: string,
  server?: string,
  port = 53,
  protocol: DnsProtocol = UDP,
): Question {
  const question = { kind: 'ask', name: wireOf(name), protocol } as const
  return server === undefined
    ? question
    : { ...question, server: { address: prefixOf(server), port } }
}

/** The explanations for an endpoint of the node. */
export function explainOn(
  node: Node,
  question: Question,
  from = 'a',
  asker: Partial<Asker> = {},
): Explanation {
  const { id, labels, hook, addresses } = node.endpoint(from)
  const { core, policies } = node
  const found = explain(
    { core, policies },
    { id, labels, hook, addresses, audited: undefined, ...asker },
    question,
  )
  assert.ok(found !== undefined, `${from} has rules`)
  return found
}
