// `namegate.io/allow-guarded`: which selectors label guarded addresses while policies change. An endpoint without such a policy never
// reaches a guarded address, not even during a change.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { explain } from '../../src/explain/explain.ts'
import type { Policy } from '../../src/policy/rule.ts'
import {
  mkEndpoint,
  mkPolicies,
  Node,
  prefixOf,
  wireOf,
  type NodeOptions,
} from '../support/nodes/node.ts'

const PROTECTED = '10.96.0.1'

function policy(app: string, peer: string, allowsGuarded = false): Policy {
  const spec = `endpointSelector: { matchLabels: { app: ${app} } }\negress: [ { toFQDNs: [ ${peer} ] } ]`
  const [made] = mkPolicies(spec)
  assert.ok(made !== undefined)
  const named = { ...made, name: `${app} ${peer} ${allowsGuarded}` }
  return allowsGuarded ? { ...named, allowsGuarded } : named
}

const EXACT = '{ matchName: in.example }'
const WIDE = '{ matchPattern: "*.example" }'
const OPEN = policy('shop', EXACT, true)
const SAME_FOR_MAIL = policy('mail', EXACT)
const MAIL_ELSEWHERE = policy('mail', '{ matchName: z.y }')
const WIDE_FOR_MAIL = policy('mail', WIDE)

function mkNode(options: NodeOptions = {}): Node {
  const node = new Node({ protectedPrefixes: ['10.96.0.0/12'], rowsPerLook: 1, ...options })
  node.setEndpoints([
    mkEndpoint('shop', ['10.0.1.5'], ['k8s:app=shop']),
    mkEndpoint('mail', ['10.0.1.6'], ['k8s:app=mail']),
  ])
  return node
}

/** Both endpoints learn the address, as by an answer. */
function learn(node: Node, address = PROTECTED): void {
  for (const name of ['shop', 'mail']) node.learn(node.endpoint(name).id, 'in.example', [address])
}

/** Puts policies in force. After every write, checks if mail reaches the address. */
function change(node: Node, policies: readonly Policy[]): void {
  let fault = ''
  node.recorder.onWrite = ({ section, action, key }) => {
    if (node.verdict('mail', PROTECTED) !== 'deny')
      fault ||= `open after ${section} ${action} ${key}`
  }
  node.setPolicies(policies)
  node.recorder.onWrite = () => undefined
  assert.equal(fault, '')
}

function verdicts(node: Node): string {
  return `${node.verdict('shop', PROTECTED)} ${node.verdict('mail', PROTECTED)}`
}

test('PolicyHolds opens guarded addresses to selectors that every policy with them opens', () => {
  const rows: readonly (readonly [policies: readonly Policy[], expected: string, why: string])[] = [
    [[OPEN, WIDE_FOR_MAIL], 'allow deny', 'a selector of its own'],
    [
      [OPEN, SAME_FOR_MAIL],
      'deny deny',
      'another document has the selector without the annotation',
    ],
    [[policy('shop', EXACT), WIDE_FOR_MAIL], 'deny deny', 'no document has the annotation'],
    [[OPEN, policy('mail', EXACT, true)], 'allow allow', 'both have the annotation'],
    [[WIDE_FOR_MAIL], 'allow deny', 'no policy selects the shop: its default allows'],
  ]
  for (const [policies, expected, why] of rows) {
    const before = mkNode()
    before.setPolicies(policies)
    learn(before)
    assert.equal(verdicts(before), expected, why)
    assert.deepEqual(before.differences(), [])
  }
})

test('PolicyHolds never opens them to others during a change of policies', () => {
  const node = mkNode()
  node.setPolicies([OPEN, WIDE_FOR_MAIL])
  learn(node)
  const steps: readonly (readonly [policies: readonly Policy[], expected: string, why: string])[] =
    [
      [[OPEN, SAME_FOR_MAIL], 'deny deny', 'closed before the other rules are in force'],
      [[OPEN, WIDE_FOR_MAIL], 'allow deny', 'open again after their removal'],
      [[policy('shop', EXACT), SAME_FOR_MAIL], 'deny deny', 'the annotation is removed'],
      [[OPEN, MAIL_ELSEWHERE], 'allow deny', 'the annotation is added, and the others are removed'],
      [[{ ...OPEN }, MAIL_ELSEWHERE], 'allow deny', 'the same document read again'],
      [[MAIL_ELSEWHERE, policy('shop', WIDE)], 'deny deny', 'the document is removed'],
    ]
  for (const [policies, expected, why] of steps) {
    change(node, policies)
    assert.equal(verdicts(node), expected, why)
    assert.deepEqual(node.differences(), [], why)
  }
})

test('PolicyHolds keeps an address open that is open before and after a change, on every write', () => {
  const node = mkNode()
  node.setPolicies([OPEN])
  learn(node)
  let cut = ''
  node.recorder.onWrite = ({ key }) => {
    if (node.verdict('shop', PROTECTED) !== 'allow') cut ||= key
  }
  node.setPolicies([{ ...OPEN, name: 'renamed' }, WIDE_FOR_MAIL])
  assert.equal(cut, '')
})

test('explain decides about a guarded address as for a packet after the answer', () => {
  const node = mkNode()
  node.setPolicies([OPEN, WIDE_FOR_MAIL])
  const question = {
    kind: 'connect',
    name: wireOf('in.example'),
    address: prefixOf(PROTECTED),
    protocol: 6,
    port: 443,
  } as const
  const verdictOf = (name: string) => {
    const { id, labels, hook, addresses } = node.endpoint(name)
    return explain(node, { id, labels, hook, addresses, audited: undefined }, question)?.verdict
  }
  const said = [verdictOf('shop'), verdictOf('mail')].join(' ')
  learn(node)
  assert.equal(said, verdicts(node))
  assert.equal(said, 'allow deny')
})

test('FactLabels gives guarded addresses in an endpoint’s own scope no more labels than in the node’s', () => {
  const learning = mkNode({ learning: 'endpoint' })
  learning.setPolicies([OPEN, WIDE_FOR_MAIL])
  learn(learning)
  assert.equal(verdicts(learning), 'allow deny')
  const named = mkNode({ defaultEgress: 'allow-named' })
  named.setPolicies([OPEN])
  learn(named)
  assert.equal(verdicts(named), 'allow deny', 'guarded addresses do not get reserved:named')
})

test('FactLabels gives always guarded addresses no label of any document', () => {
  const node = mkNode({ nodeAddresses: ['10.96.0.254'] })
  node.setPolicies([OPEN])
  for (const address of ['127.0.0.1', '10.96.0.254', '0.0.0.0', '224.0.0.1']) {
    learn(node, address)
    assert.ok(!node.labelsOf(`${address}/32`).includes('fqdn:in.example'), address)
  }
  learn(node, '169.254.169.254')
  assert.ok(node.labelsOf('169.254.169.254/32').includes('fqdn:in.example'))
})
