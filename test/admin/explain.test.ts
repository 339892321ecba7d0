import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { explainBody } from '../../src/admin/explain.ts'
import { openApi } from '../../src/admin/document/openapi.ts'
import { AdminServer } from '../../src/admin/server.ts'
import { OUTCOMES } from '../../src/flows/record/flow-kinds.ts'
import { mkDnsFlow } from '../support/nodes/dns-flow.ts'
import { AskedServers } from '../../src/proxy/upstream/asked-servers.ts'
import { prefixOf } from '../support/nodes/node.ts'
import { http, mkAdmin } from '../support/nodes/admin.ts'
import { mkPolicyNode } from '../support/nodes/policy-node.ts'

const RUN_TIME = { on: true, origin: 'run time' }
const POLICY = `egress: [ { toFQDNs: [ { matchPattern: "*.cilium.io" } ], toPorts: [ { ports: [ { port: "443" } ] } ] } ]`

test('explainBody says that an earlier daemon left an entry, which the kernel still uses without a state folder', () => {
  const before = mkPolicyNode([POLICY])
  before.learn(before.endpoint('a').id, 'www.cilium.io', ['203.0.113.5'])
  const { state } = mkAdmin(mkPolicyNode([POLICY], { recorder: before.recorder }))
  const notesOf = (address: string): string => {
    const answer = explainBody(state, { endpoint: 'a', address, port: '443/TCP' })
    return answer.kind === 'ok' ? answer.value.notes.join() : answer.reason
  }
  assert.match(notesOf('203.0.113.5'), /an earlier daemon left an entry for this address/)
  assert.doesNotMatch(notesOf('203.0.113.6'), /earlier daemon/)
})

test('explainBody answers about an endpoint of the node, from the policies in force', () => {
  const node = mkPolicyNode([POLICY])
  const { state } = mkAdmin(node)
  node.learn(node.endpoint('a').id, 'www.cilium.io', ['203.0.113.5'])
  const answer = explainBody(state, { endpoint: 'a', address: '203.0.113.5', port: '443/TCP' })
  assert.deepEqual(answer, {
    kind: 'ok',
    value: {
      verdict: 'allow',
      reason: '443/TCP is allowed by a rule',
      rules: [{ policy: 'policy-0', file: 'policy-0.yaml', line: 6, action: 'allow' }],
      selectors: ['*.cilium.io'],
      identities: [node.identityOf('203.0.113.5')],
      labels: ['fqdn:*.cilium.io', 'reserved:world', 'reserved:world-ipv4'],
      default: { egress: 'deny', policies: ['policy-0'], audited: [] },
      nearest: null,
      add: null,
      notes: ['203.0.113.5 is known by www.cilium.io'],
    },
  })
})

test('explainBody reports what audit lets pass, and which setting turned it on', () => {
  const node = mkPolicyNode([POLICY])
  const question = { endpoint: 'a', address: '203.0.113.9', port: '80' }
  const rows = [
    ['enforce', false, 'deny', /a policy turns default deny on$/],
    ['audit', false, 'audit', /audit by the node$/],
    ['enforce', true, 'audit', /audit by run time$/],
  ] as const
  for (const [mode, audited, verdict, words] of rows) {
    node.endpoints.setAudit(node.endpoint('a'), audited)
    const { state } = mkAdmin(node, { mode: () => mode, auditOf: () => RUN_TIME })
    const answer = explainBody(state, question)
    assert.ok(answer.kind === 'ok')
    assert.equal(answer.value.verdict, verdict)
    assert.match(answer.value.reason, words)
  }
})

test('explainBody reports why the datapath decides otherwise', () => {
  const node = mkPolicyNode([POLICY])
  const { state } = mkAdmin(node, { mode: () => 'bypass' })
  const answer = explainBody(state, { endpoint: 'a', address: '203.0.113.9', port: '80' })
  assert.ok(answer.kind === 'ok')
  assert.deepEqual(answer.value.notes, ['the mode is bypass: everything passes'])
})

test('explainBody reports that an allowed connection hangs while this host does not forward', () => {
  const { state } = mkAdmin(mkPolicyNode([POLICY]), { forwardingRemedy: () => 'sysctl -w x=1' })
  const rows = [
    [{ ask: 'www.cilium.io' }, 'allow', [/connections hang: sysctl -w x=1$/]],
    [{ name: 'www.cilium.io', port: '443' }, 'allow', [/connections hang: sysctl -w x=1$/]],
    [{ name: 'www.cilium.io', port: '80' }, 'deny', []],
  ] as const
  for (const [question, verdict, said] of rows) {
    const answer = explainBody(state, { endpoint: 'a', ...question })
    assert.ok(answer.kind === 'ok')
    assert.equal(answer.value.verdict, verdict)
    const notes = answer.value.notes.filter((note) => note.includes('forward'))
    assert.equal(notes.length, said.length)
    for (const [i, words] of said.entries()) assert.match(notes[i] ?? '', words)
  }
})

test('explainBody says that the last answer with the name opened less or nothing', () => {
  const node = mkPolicyNode([POLICY])
  const { state } = mkAdmin(node)
  const answered = (outcome: 'degraded' | 'exact', addresses: number, qtype = 1): void =>
    state.flows.addDns(
      0,
      mkDnsFlow('www.cilium.io', {
        kind: 'answered',
        endpoint: node.endpoint('a').id,
        outcome: OUTCOMES.indexOf(outcome),
        addresses,
        qtype,
      }),
    )
  const notes = (question: Readonly<Record<string, string>>): string => {
    const answer = explainBody(state, { endpoint: 'a', ...question })
    assert.ok(answer.kind === 'ok')
    return answer.value.notes.join('\n')
  }
  const said = /^the last answer with www\.cilium\.io was degraded \(an address is guarded, or /m
  const questions = [{ ask: 'www.cilium.io' }, { name: 'www.cilium.io', port: '443' }]
  for (const question of questions) assert.doesNotMatch(notes(question), said, 'not asked yet')
  answered('degraded', 0)
  answered('exact', 0, 28)
  for (const question of questions) assert.match(notes(question), said)
  assert.doesNotMatch(notes({ ask: 'dns.cilium.io' }), said, 'another name')
  answered('exact', 1)
  for (const question of questions) assert.doesNotMatch(notes(question), said, 'a later answer')
})

test('explainBody counts the trust in the server, as for a real query', () => {
  const node = mkPolicyNode([
    `egress: [ { toPorts: [ { ports: [ { port: "53", protocol: ANY } ], rules: { dns: [ { matchPattern: "*" } ] } } ] } ]`,
  ])
  const rows = [
    [undefined, '192.0.2.1:53', 'allow', /^upstreams\.original-destination is off: the config/m],
    [{ trusted: ['192.0.2.0/24'] }, '192.0.2.1:53', 'allow', /^$/],
    [{ trusted: [] }, '198.51.100.1:53', 'allow', /^$/],
    [
      { trusted: [] },
      '192.0.2.1:53',
      'deny',
      /^192\.0\.2\.1:53 is refused: it is not in upstreams/,
    ],
    [
      { trusted: ['192.0.2.0/24'] },
      '198.51.100.1:53',
      'deny',
      /^198\.51\.100\.1:53 is refused: .*, and upstreams\.untrusted is refuse; policy says: .* may be asked/,
    ],
    [
      { trusted: ['192.0.2.0/24'], untrusted: 'pass' },
      '198.51.100.1:53',
      'allow',
      /learns nothing from answers of 198\.51\.100\.1:53: it is not in upstreams\.trusted/,
    ],
    [{ trusted: [] }, '10.0.0.1:10053', 'allow', /10\.0\.0\.1:10053 is namegate itself/],
  ] as const
  for (const [given, server, verdict, said] of rows) {
    const untrusted = given !== undefined && 'untrusted' in given ? given.untrusted : 'refuse'
    const asked = new AskedServers({
      trusted: (given?.trusted ?? []).map(prefixOf),
      servers: [{ family: 4, address: '198.51.100.1', port: 53 }],
      untrusted,
      isOurs: (_family, _octets, port) => port === 10_053,
    })
    const { state } = mkAdmin(node, { asked: given === undefined ? undefined : asked })
    // Audit does not let such a query pass.
    for (const mode of ['enforce', 'audit'] as const) {
      const answer = explainBody(
        { ...state, mode: () => mode },
        { endpoint: 'a', ask: 'a.test', server },
      )
      assert.ok(answer.kind === 'ok')
      const { value } = answer
      assert.equal(value.verdict, verdict, server)
      assert.match(verdict === 'deny' ? value.reason : value.notes.join('\n'), said)
    }
  }
})

test('explainBody refuses an invalid question, with the field and the expected value', () => {
  const { state } = mkAdmin(mkPolicyNode([POLICY]))
  const rows: readonly (readonly [body: unknown, status: number, words: RegExp])[] = [
    [null, 400, /expected \{"endpoint": NAME\}/],
    [[], 400, /expected \{"endpoint"/],
    [{ ask: 'a.b' }, 400, /expected \{"endpoint"/],
    [{ endpoint: 'a', ask: 'a.b', more: '' }, 400, /expected \{"endpoint"/],
    [{ endpoint: 'a', ask: 1 }, 400, /expected \{"endpoint"/],
    [{ endpoint: 'a' }, 400, /^name: found neither ask nor name nor address/],
    [
      { endpoint: 'a', name: 'a.b', port: 'http' },
      400,
      /^port: found "http", expected PORT\/PROTOCOL/,
    ],
    [{ endpoint: 'nobody', ask: 'a.b' }, 404, /no endpoint is named "nobody"$/],
    [{ endpoint: 'B', ask: 'a.b' }, 404, /no endpoint is named "B"; did you mean b\?$/],
  ]
  for (const [body, status, words] of rows) {
    const answer = explainBody(state, body)
    assert.ok(answer.kind === 'refused', JSON.stringify(body))
    assert.equal(answer.status, status)
    assert.match(answer.reason, words)
  }
})

test('AdminServer answers POST /v1/explain, and refuses with a status', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'namegate-admin-explain-'))
  const socket = join(folder, 'admin.sock')
  const { state } = mkAdmin(mkPolicyNode([POLICY]))
  const server = new AdminServer({ state, socket, onError: (error) => assert.ifError(error) })
  await server.start()
  try {
    const rows = [
      [{ endpoint: 'a', ask: 'www.cilium.io' }, 200, /"verdict": ?"allow"/],
      [{ endpoint: 'a', address: '203.0.113.5', port: '443' }, 200, /"verdict": ?"deny"/],
      [{ endpoint: 'nobody', ask: 'a.b' }, 404, /no endpoint is named/],
      [{ endpoint: 'a' }, 400, /name: found neither/],
    ] as const
    for (const [body, status, words] of rows) {
      const answer = await http({ socketPath: socket }, '/v1/explain', {
        method: 'POST',
        body: JSON.stringify(body),
      })
      assert.equal(answer.status, status)
      assert.match(answer.text, words)
    }
  } finally {
    await server.stop()
    rmSync(folder, { recursive: true })
  }
})

test('openApi describes the question and the answer of explain', () => {
  const text = JSON.stringify(openApi('1.0.0'))
  assert.match(text, /"\/v1\/explain":\{"post"/)
  assert.match(text, /"\$ref":"#\/components\/schemas\/Explanation"/)
})
