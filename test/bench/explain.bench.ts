// `explain` on a node with 10,000 policies of 100,000 names, 300 of them on the endpoint: each kind of question. Denied ones include the
// search for the nearest rule.

import { explain } from '../../src/explain/explain.ts'
import type { Question } from '../../src/explain/explanation.ts'
import { Node, mkEndpoint, mkPolicies } from '../support/nodes/node.ts'
import { ask, connect } from '../support/nodes/explain.ts'
import { runBench, type Figure } from './support/bench.ts'

const POLICIES = 10_000
const NAMES = 10
const OWN = 30
const ROUNDS = 200

function mkPolicy(i: number): string {
  const names = Array.from(
    { length: NAMES },
    (_, n) => `{ matchPattern: "*.n${n}.p${i}.bench.test" }`,
  )
  const app = i < OWN ? 'shop' : `app-${i % 499}`
  return `endpointSelector: { matchLabels: { app: ${app} } }
egress:
- { toFQDNs: [ ${names.join(', ')} ], toPorts: [ { ports: [ { port: "443" } ] } ] }
- { toPorts: [ { ports: [ { port: "53" } ], rules: { dns: [ ${names.join(', ')} ] } } ] }`
}

function run(): readonly Figure[] {
  const node = new Node({ staticIdentities: 1_000_000, configuredPrefixes: 1024 })
  node.setEndpoints([mkEndpoint('shop', ['198.18.0.9'], ['k8s:app=shop'])])
  node.setPolicies(mkPolicies(...Array.from({ length: POLICIES }, (_, i) => mkPolicy(i))))
  const rows: readonly (readonly [name: string, question: Question])[] = [
    ['may it connect: yes', connect({ name: 'www.n3.p7.bench.test', address: '203.0.113.7' })],
    ['may it connect: no, other port', connect({ name: 'www.n3.p7.bench.test' }, '22')],
    ['may it connect: no, nothing near', connect({ address: '203.0.113.7' })],
    ['may it ask: yes', ask('www.n3.p7.bench.test')],
    ['may it ask: no', ask('www.n3.p9999.bench.example')],
  ]
  return rows.map(([name, question]) => ({ name, ...measure(node, question) }))
}

function measure(node: Node, question: Question): Omit<Figure, 'name'> {
  const { core, policies } = node
  const asker = { ...node.endpoint('shop'), audited: undefined }
  const times: number[] = []
  for (let i = 0; i < ROUNDS; i++) {
    const began = performance.now()
    explain({ core, policies }, asker, question)
    times.push(performance.now() - began)
  }
  times.sort((a, b) => a - b)
  const [least = 0, most = 0] = [times[0], times.at(-1)]
  return { value: times[ROUNDS / 2] ?? 0, unit: 'ms', limit: 5, spread: [least, most] }
}

await runBench({
  name: 'explain',
  about: '10,000 policies, 100,000 names, 300 on the endpoint',
  run,
})
