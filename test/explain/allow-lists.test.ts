// Explanations for an endpoint whose policies are allow-lists: they name lines of the list, and the line that would allow.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatExplanation } from '../../src/cli/policy/explanation-text.ts'
import type { Question } from '../../src/explain/explanation.ts'
import { loadAllowList } from '../../src/policy/load/allow-list.ts'
import type { Policy } from '../../src/policy/rule.ts'
import { ask, connect, explainOn } from '../support/nodes/explain.ts'
import { mkPolicies, type Node } from '../support/nodes/node.ts'
import { mkPolicyNode } from '../support/nodes/policy-node.ts'

const FILE = '/etc/web.allow'
const LIST = `# what the shop needs
www.cdn.test
api.shop.test:443/tcp
192.0.2.64/28
`
const OTHER = 'egress: [ { toCIDR: [ 198.51.100.0/24 ] } ]'

function list(text: string, file: string): readonly Policy[] {
  const { policies, faults } = loadAllowList(text, file, { matchLabels: new Map() })
  assert.deepEqual(faults, [])
  return policies
}

function mkListNode(...more: readonly Policy[]): Node {
  const node = mkPolicyNode([])
  node.setPolicies([...list(LIST, FILE), ...more])
  return node
}

const ROWS: readonly (readonly [
  question: Question,
  reason: string,
  lines: readonly number[],
  add: string | null,
  nearest: number | null,
  why: string,
])[] = [
  [
    ask('api.shop.test'),
    `api.shop.test may be asked: a line of ${FILE} permits it`,
    [3],
    null,
    null,
    'the line that permits the name, not the first of the file',
  ],
  [
    ask('evil.test'),
    `evil.test may not be asked: no line of ${FILE} allows it`,
    [],
    'evil.test',
    null,
    'a name that no line has',
  ],
  [
    ask('203.0.113.7'),
    `203.0.113.7 may not be asked: no line of ${FILE} allows it`,
    [],
    null,
    null,
    'an address that is asked as a name: a line with it lets no query pass',
  ],
  [
    ask('api.shop.tets'),
    `api.shop.tets may not be asked: no line of ${FILE} allows it`,
    [],
    'api.shop.tets',
    3,
    'a misspelt name: the line that is near',
  ],
  [
    connect({ name: 'www.cdn.test' }),
    `443/TCP is allowed by a line of ${FILE}`,
    [2],
    null,
    null,
    'a connection that a line allows',
  ],
  [
    connect({ name: 'api.shop.test' }, '80'),
    `80/TCP is denied: no line of ${FILE} allows it`,
    [],
    'api.shop.test:80/tcp',
    3,
    'another port',
  ],
  [
    connect({ address: '203.0.113.9' }),
    `443/TCP is denied: no line of ${FILE} allows it`,
    [],
    '203.0.113.9:443/tcp',
    2,
    'an address without a name',
  ],
  [
    connect({ address: '2001:db8::77' }, '443/17'),
    `443/UDP is denied: no line of ${FILE} allows it`,
    [],
    '[2001:db8::77]:443/udp',
    2,
    'IPv6 in brackets',
  ],
  [
    connect({ address: '203.0.113.9' }, '443/132'),
    `443/SCTP is denied: no line of ${FILE} allows it`,
    [],
    null,
    2,
    'no line can have SCTP',
  ],
  [
    connect({ address: '192.0.2.9' }),
    `443/TCP is denied: no line of ${FILE} allows it`,
    [],
    null,
    4,
    'no line can open the node',
  ],
  [
    connect({ address: '203.0.113.9' }, '53/17'),
    `53/UDP is denied: no line of ${FILE} allows it`,
    [],
    null,
    2,
    'a DNS server is a way around names',
  ],
  [
    connect({ address: '169.254.169.254' }),
    `443/TCP is denied: no line of ${FILE} allows it`,
    [],
    '169.254.169.254:443/tcp',
    null,
    'a guarded address: no name could have led to it',
  ],
  [
    connect({ name: 'api.shop.test', address: '169.254.169.254' }),
    `443/TCP is denied: no line of ${FILE} allows it`,
    [],
    '169.254.169.254:443/tcp',
    3,
    'a guarded address of an allowed name',
  ],
]

test('explain names the lines of allow-lists, and the line that would allow', () => {
  const node = mkListNode()
  for (const [question, reason, lines, add, nearest, why] of ROWS) {
    const found = explainOn(node, question)
    assert.equal(found.reason, reason, why)
    assert.deepEqual(
      found.rules.map(({ file, line }) => [file, line]),
      lines.map((line) => [FILE, line]),
      why,
    )
    assert.deepEqual(found.add, add === null ? null : { file: FILE, text: add }, why)
    assert.equal(found.nearest?.line ?? null, nearest, why)
  }
})

test('explain gives a line that allows what was asked', () => {
  for (const [question, , , add, , why] of ROWS) {
    if (add === null) continue
    const node = mkListNode(...list(`${add}\n`, 'added.allow'))
    assert.equal(explainOn(node, question).verdict, 'allow', why)
  }
})

test('explain names the line for names below an asked name, before a line with a similar name', () => {
  const node = mkPolicyNode([])
  node.setPolicies(list('example.com\n*.example.org\n', FILE))
  for (const question of [ask('example.org'), connect({ name: 'example.org' })]) {
    const { nearest } = explainOn(node, question)
    const missing = '*.example.org matches names below example.org, not example.org itself'
    assert.deepEqual([nearest?.line, nearest?.missing], [2, missing])
  }
  const rule = '{ ports: [ { port: "53" } ], rules: { dns: [ { matchPattern: "*.cilium.io" } ] } }'
  const { nearest } = explainOn(
    mkPolicyNode([`egress: [ { toPorts: [ ${rule} ] } ]`]),
    ask('cilium.io'),
  )
  const missing =
    'its rules.dns has *.cilium.io, which matches names below cilium.io, not cilium.io itself'
  assert.equal(nearest?.missing, missing)
})

test('explain takes the name that led to an address', () => {
  const node = mkListNode()
  node.learn(node.endpoint('a').id, 'api.shop.test', ['203.0.113.9'])
  const found = explainOn(node, connect({ address: '203.0.113.9' }, '80'))
  assert.deepEqual(found.add, { file: FILE, text: 'api.shop.test:80/tcp' })
})

test('explain says of an asked address that policy allows it as an address', () => {
  const rows = [
    [
      '203.0.113.7',
      /^203\.0\.113\.7 is an address: .* the line 203\.0\.113\.7 of a list, --allow or toCIDR/,
    ],
    ['203.0.113.256', /^203\.0\.113\.256 looks like an address, and is none/],
  ] as const
  for (const node of [mkListNode(), mkListNode(...mkPolicies(OTHER))]) {
    for (const [name, said] of rows) {
      const { notes, add } = explainOn(node, ask(name))
      assert.match(notes.join('\n'), said)
      assert.equal(add, null)
    }
  }
})

test('explain says of a guarded address that no name opens it', () => {
  for (const name of [undefined, 'api.shop.test']) {
    const { notes, nearest } = explainOn(
      mkListNode(),
      connect({ ...(name && { name }), address: '169.254.169.254' }),
    )
    assert.match(notes.join('\n'), /^169\.254\.169\.254 is guarded, so no name opens it$/m)
    assert.notEqual(nearest?.missing, 'api.shop.test does not match api.shop.test')
  }
})

test('explain keeps to rules where other policies select the endpoint too', () => {
  const node = mkListNode(...mkPolicies(OTHER))
  const found = explainOn(node, ask('evil.test'))
  assert.equal(found.reason, 'evil.test may not be asked: no rules.dns for UDP matches it')
  assert.equal(found.add, null)
})

test('explain says for every policy that DNS goes through namegate', () => {
  const node = mkPolicyNode([OTHER])
  const { notes } = explainOn(node, connect({ address: '203.0.113.9' }, '53'))
  assert.match(notes.join(), /DNS goes through namegate/)
})

test('formatExplanation says which policies turn default deny on, and leaves the default cluster out', () => {
  const found = explainOn(mkListNode(), ask('evil.test'))
  const labels = ['k8s:app=a', 'k8s:io.cilium.k8s.policy.cluster=default']
  const rows = [
    [['up'], /^default: +deny, turned on by the policy "up"$/m],
    [['a', 'b/c'], /^default: +deny, turned on by the policies "a", "b\/c"$/m],
    [[], /^default: +deny$/m],
  ] as const
  for (const [policies, line] of rows) {
    const text = formatExplanation({ ...found, labels, default: { ...found.default, policies } })
    assert.match(text, line)
    assert.match(text, /^labels: +k8s:app=a$/m)
  }
  const far = ['k8s:io.cilium.k8s.policy.cluster=far']
  assert.match(formatExplanation({ ...found, labels: far }), /^labels: +k8s:io\.cilium.*=far$/m)
})

test('formatExplanation prints the line to add, and that a name alone allows every port', () => {
  const text = formatExplanation(explainOn(mkListNode(), ask('evil.test')))
  assert.match(
    text,
    /^note: +the line evil\.test allows every port, and evil\.test:PORT one port$/m,
  )
  assert.match(text, /^remedy: +add the line evil\.test to \/etc\/web\.allow$/m)
})
