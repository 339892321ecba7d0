import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { parsePolicyTest } from '../../../src/cli/policy/policy-test-file.ts'
import { formatFault, InvalidInputError } from '../../../src/core/errors.ts'
import { namegate, runCommand, type Ran } from '../../support/nodes/command.ts'

const policyTestCommand = namegate('policy test')

const EXAMPLE = 'docs/examples/policy-test.yaml'
const DOCS = readFileSync('docs/policy-test.md', 'utf8')
const root = mkdtempSync(join(tmpdir(), 'namegate-policy-test-'))
after(() => rmSync(root, { recursive: true, force: true }))

function mkFile(name: string, text: string): string {
  const path = join(root, name)
  writeFileSync(path, text)
  return path
}

async function run(...args: readonly string[]): Promise<Ran> {
  const { code, out, err } = await runCommand(policyTestCommand, ...args)
  return { code, out: out.replaceAll(`${root}/`, ''), err }
}

test('policyTestCommand works as docs/policy-test.md shows', async () => {
  assert.ok(DOCS.includes(readFileSync(EXAMPLE, 'utf8')), 'the page shows the file')
  const { code, out } = await run(EXAMPLE)
  assert.deepEqual([code, out], [0, '7 expectations: all hold\n'])
  assert.ok(DOCS.includes(out), 'the page shows the output')
  const wrong = mkFile(
    'wrong.yaml',
    'policies: [config/policies]\ntests:\n  - labels: { app: laptop }\n    expect:\n      - { ask: www.example.net, verdict: allow }\n',
  )
  const failed = await run(wrong)
  assert.equal(failed.code, 1)
  const [, ...diff] = failed.out.split('\n')
  assert.ok(DOCS.includes(diff.join('\n')), `the page shows the diff:\n${failed.out}`)
})

test('policyTestCommand shows what does not hold, with place, diff and the nearest rule', async () => {
  const file = mkFile(
    'a.yaml',
    `tests:
  - labels: { app: laptop }
    expect:
      - { name: www.example.com, port: 22, verdict: allow }
      - { name: www.example.com, port: 443, verdict: allow, policy: default/other }
      - { name: www.example.com, port: 443, verdict: allow }
`,
  )
  const { code, out } = await run(file, '--policies', 'config/policies')
  assert.equal(code, 1)
  assert.equal(
    out,
    `a.yaml:4:9: app=laptop: name www.example.com port 22
  - allow
  + deny: 22/TCP is denied: no rule allows it and a policy turns default deny on
    nearest: default/laptop config/policies/example.yaml:24: its ports are 443/TCP, 80/TCP, not 22/TCP
a.yaml:5:9: app=laptop: name www.example.com port 443
  - allow by default/other
  + allow by default/laptop config/policies/example.yaml:24: 443/TCP is allowed by a rule
3 expectations: 2 not as expected
`,
  )
  const json = await run(file, '--policies', 'config/policies', '-o', 'json')
  const holds = [...json.out.matchAll(/"holds": (true|false)/g)].map(([, each]) => each)
  assert.deepEqual(holds, ['false', 'false', 'true'])
})

test('policyTestCommand takes endpoints, resources and defaults from files', async () => {
  const resources = mkFile(
    'lake.yaml',
    'resources: [ { name: lake, addresses: [ 10.2.0.0/24 ], labels: { app: lake } } ]\n',
  )
  const policy = mkFile(
    'cluster.yaml',
    'apiVersion: cilium.io/v2\nkind: CiliumNetworkPolicy\nmetadata: { name: p }\nspec: { endpointSelector: { matchLabels: { app: a } }, egress: [ { toEntities: [ cluster ] } ] }\n',
  )
  const file = mkFile(
    'b.yaml',
    `policies: [ ${policy} ]
resources: [ ${resources} ]
tests:
  - { labels: { app: a }, expect: [ { address: 10.2.0.7, port: 1, verdict: allow }, { address: 10.3.0.7, port: 1, verdict: deny } ] }
  - { labels: { app: b }, expect: [ { address: 10.3.0.7, port: 1, verdict: deny } ] }
`,
  )
  const closed = mkFile('closed.yaml', 'default-egress: deny\n')
  assert.equal((await run(file)).out.split('\n').at(-2), '3 expectations: 1 not as expected')
  assert.deepEqual((await run(file, '--config', closed)).code, 0)
})

test('parsePolicyTest reports each fault with its place and path', () => {
  const head = 'tests:\n  - labels: { app: a }\n    expect:\n'
  const rows: readonly (readonly [text: string, fault: string])[] = [
    ['', 'f.yaml:1:1: found nothing, expected a mapping'],
    ['tests: []', 'f.yaml:1:8: tests: found no test, expected one'],
    ['tests: [ {} ]', 'f.yaml:1:10: tests[0]: found no labels, expected those of an endpoint'],
    [
      `${head}      - { ask: a.b }`,
      'f.yaml:4:9: tests[0].expect[0]: found no verdict, expected allow, deny or audit',
    ],
    [
      `${head}      - { ask: a.b, verdict: yes }`,
      'f.yaml:4:30: tests[0].expect[0].verdict: found "yes", expected allow, deny or audit',
    ],
    [
      `${head}      - { ask: a..b, verdict: deny }`,
      'f.yaml:4:16: tests[0].expect[0].ask: found "a..b": empty label',
    ],
    [
      `${head}      - { ask: "http://a.b", verdict: deny }`,
      'f.yaml:4:16: tests[0].expect[0].ask: found "http://a.b": character ":": write the name alone, without scheme and path; an octet that is meant so is written \\058',
    ],
    [
      `${head}      - { name: "a.b:53", port: 53, verdict: deny }`,
      'f.yaml:4:17: tests[0].expect[0].name: found "a.b:53": character ":": write the name alone, without port; an octet that is meant so is written \\058',
    ],
    [
      `${head}      - { name: "*.b", port: 53, verdict: deny }`,
      'f.yaml:4:17: tests[0].expect[0].name: found "*.b": character "*": write a name instead of a pattern; an octet that is meant so is written \\042',
    ],
    [`${head}      - { ask: a\\058b.c, verdict: deny }`, ''],
    [
      `${head}      - { name: a.b, verdict: deny }`,
      'f.yaml:4:9: tests[0].expect[0]: found none, expected one, such as 443/TCP',
    ],
    [
      `${head}      - { name: a.b, port: 443/HTTP, verdict: deny }`,
      'f.yaml:4:28: tests[0].expect[0].port: found "443/HTTP", expected PORT/PROTOCOL or ICMP, such as 443/TCP; PORT is 1 to 65535, PROTOCOL is TCP, UDP or SCTP',
    ],
    [
      `${head}      - { nam: a.b, verdict: deny }`,
      'f.yaml:4:11: unknown field tests[0].expect[0].nam; did you mean "name"?',
    ],
  ]
  for (const [text, fault] of rows) {
    const { faults } = parsePolicyTest(text, 'f.yaml')
    assert.equal(faults.map(formatFault)[0] ?? '', fault, text)
  }
})

test('policyTestCommand refuses wrong use with exit code 2, and files with faults', async () => {
  assert.equal((await run()).code, 2)
  const bare = mkFile(
    'bare.yaml',
    'tests: [ { labels: {}, expect: [ { ask: a.b, verdict: allow } ] } ]',
  )
  const { code, err } = await run(bare)
  assert.equal(code, 2)
  assert.match(err, /names no policies: give --policies PATH/)
  await assert.rejects(run(mkFile('c.yaml', 'tests: 1')), InvalidInputError)
  await assert.rejects(run(join(root, 'nothing.yaml')), InvalidInputError)
})

test('policyTestCommand asks over the protocol of a row, and over UDP if the row has none', async () => {
  const policy = mkFile(
    'protocol-policy.yaml',
    `apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: { name: p }
spec:
  endpointSelector: {}
  egress:
    - toPorts: [ { ports: [ { port: "53", protocol: UDP } ], rules: { dns: [ { matchName: cilium.io } ] } } ]
    - toPorts: [ { ports: [ { port: "53", protocol: TCP } ], rules: { dns: [ { matchPattern: "*" } ] } } ]
`,
  )
  const rows = [
    '{ ask: cilium.io, verdict: allow }',
    '{ ask: other.io, verdict: deny }',
    '{ ask: other.io, protocol: UDP, verdict: deny }',
    '{ ask: other.io, protocol: tcp, verdict: allow }',
    '{ ask: other.io, protocol: TCP, server: "9.9.9.9:53", verdict: allow }',
    '{ ask: other.io, server: "9.9.9.9:53", verdict: deny }',
  ]
  const file = (list: readonly string[]): string =>
    `tests: [ { labels: { app: a }, expect: [ ${list.join(', ')} ] } ]\n`
  const all = await run(mkFile('protocol.yaml', file(rows)), '--policies', policy)
  assert.deepEqual([all.code, all.out], [0, '6 expectations: all hold\n'])
  const wrong = [
    '{ ask: a.x, protocol: SCTP, verdict: deny }',
    '{ name: a.x, port: 1, protocol: TCP, verdict: deny }',
  ]
  const { faults } = parsePolicyTest(file(wrong), 'wrong.yaml')
  assert.deepEqual(
    faults.map((fault) => formatFault(fault).replace(/^\S+ /, '')),
    [
      'tests[0].expect[0].protocol: found "SCTP", expected UDP or TCP',
      'tests[0].expect[1].protocol: is for a question for a name: write ask in place of name and address',
    ],
  )
})

test('policyTestCommand gives the asking endpoints addresses that no row can be about', async () => {
  const policy = mkFile(
    'cluster.yaml',
    `apiVersion: cilium.io/v2
kind: CiliumClusterwideNetworkPolicy
metadata: { name: p }
spec: { endpointSelector: {}, egress: [ { toEntities: [ cluster ] }, { toEndpoints: [ { matchLabels: { app: a } } ] } ] }
`,
  )
  // Two endpoints ask, so numbers that are given in turn are two.
  const addresses = ['0.0.0.1', '0.0.0.2', '100::1', '100::2']
  const rows = addresses.map((address) => `{ address: "${address}", port: 443, verdict: deny }`)
  const test = (app: string): string =>
    `{ labels: { app: ${app} }, expect: [ ${rows.join(', ')} ] }`
  const file = mkFile('addresses.yaml', `tests: [ ${test('a')}, ${test('b')} ]\n`)
  const { code, out } = await run(file, '--policies', policy)
  assert.deepEqual([code, out], [0, '8 expectations: all hold\n'])
})

test('policyTestCommand takes deny rules by cluster, service account and labels of the namespace', async () => {
  const policy = mkFile(
    'deny-labels.yaml',
    `apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: { name: p }
spec:
  endpointSelector: { matchLabels: { io.cilium.k8s.policy.serviceaccount: client } }
  egress: [ { toEntities: [ all ] } ]
  egressDeny:
    - toEndpoints:
        - matchLabels: { k8s:io.kubernetes.pod.namespace: test, kind: echo }
          matchExpressions: [ { key: io.cilium.k8s.policy.cluster, operator: Exists } ]
    - toEndpoints: [ { matchLabels: { io.cilium.k8s.policy.serviceaccount: back } } ]
    - toEndpoints: [ { matchLabels: { "k8s:io.cilium.k8s.namespace.labels.team": ops, io.cilium.k8s.policy.cluster: default } } ]
    - toEndpoints: [ { matchLabels: { app: far, "k8s:io.cilium.k8s.policy.cluster": edge } } ]
`,
  )
  const account = '"k8s:io.cilium.k8s.policy.serviceaccount"'
  const namespace = '"k8s:io.kubernetes.pod.namespace"'
  const endpoints = [
    `{ name: echo, addresses: [ 10.0.0.1 ], labels: { ${namespace}: test, "k8s:kind": echo } }`,
    `{ name: back, addresses: [ 10.0.0.2 ], labels: { ${account}: back } }`,
    `{ name: ops, addresses: [ 10.0.0.3 ], labels: { ${namespace}: ops, "k8s:io.cilium.k8s.namespace.labels.team": ops } }`,
    `{ name: near, addresses: [ 10.0.0.4 ], labels: { app: far } }`,
    `{ name: far, addresses: [ 10.0.0.5 ], labels: { app: far, "k8s:io.cilium.k8s.policy.cluster": edge } }`,
  ]
  const rows = ['deny', 'deny', 'deny', 'allow', 'deny'].map(
    (verdict, i) => `{ address: 10.0.0.${i + 1}, port: 8080, verdict: ${verdict} }`,
  )
  const file = mkFile(
    'deny-labels-test.yaml',
    `tests: [ { labels: { ${account}: client }, expect: [ ${rows.join(', ')} ] } ]\n`,
  )
  const known = mkFile('deny-labels-endpoints.yaml', `endpoints: [ ${endpoints.join(', ')} ]\n`)
  const { code, out } = await run(file, '--policies', policy, '--endpoints', known)
  assert.deepEqual([code, out], [0, '5 expectations: all hold\n'])
})
