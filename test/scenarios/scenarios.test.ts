// Every file here that ends in .scn is a test: README.md says how they are written. Below them, the runner itself: a
// scenario that expects the wrong thing fails, and at the right line.

import assert from 'node:assert/strict'
import { readFileSync, readdirSync } from 'node:fs'
import { test } from 'node:test'
import { parseScenario, ScenarioFault } from './runner/parse.ts'
import { runScenario } from './runner/run.ts'

for (const file of readdirSync(import.meta.dirname)
  .filter((name) => name.endsWith('.scn'))
  .sort()) {
  const text = readFileSync(`${import.meta.dirname}/${file}`, 'utf8')
  const [sentence = ''] = parseScenario(text, file).title.split(/(?<=\.) /)
  test(`${file}: ${sentence}`, () => runScenario(text, file))
}

const START = `# Proves something.
ENDPOINTS
  endpoints: [{ name: shop, addresses: [10.0.1.5], labels: { app: shop } }]
POLICY shop.yaml
  apiVersion: cilium.io/v2
  kind: CiliumNetworkPolicy
  metadata: { name: shop }
  spec:
    endpointSelector: {}
    egress: [{ toFQDNs: [{ matchName: www.example }] }]
UPSTREAM
  www.example A: 192.0.2.1 TTL 30
QUERY shop www.example A
OPEN shop 192.0.2.1:443
`
const LAST_LINE = START.split('\n').length

test('runScenario passes over the start that the next test fails with', () => {
  runScenario(`${START}EXPECT answer NOERROR 192.0.2.1`, 'a.scn')
})

test('runScenario fails at the line whose expectation is wrong', () => {
  const rows: readonly (readonly [step: string, reason: string])[] = [
    ['EXPECT answer NOERROR 192.0.2.2', 'another address'],
    ['EXPECT answer NOERROR', 'an address too many'],
    ['EXPECT answer NOERROR 192.0.2.1 192.0.2.2', 'an address too few'],
    ['EXPECT answer SERVFAIL 192.0.2.1', 'another RCODE'],
    ['EXPECT answer NOERROR 192.0.2.1 EDE 15', 'an error that is not there'],
    ['EXPECT answer NOERROR TC 192.0.2.1', 'not truncated'],
    ['EXPECT no-answer', 'there is one'],
    ['EXPECT packet shop 192.0.2.1:443 drop', 'allowed'],
    ['EXPECT packet shop 192.0.2.2:443 allow', 'dropped'],
    ['EXPECT packet shop 192.0.2.2:443 audit', 'dropped, not audited'],
    ['EXPECT data shop 192.0.2.1:443 drop', 'the connection is open'],
    ['EXPECT labels 192.0.2.1 none', 'it has some'],
    ['EXPECT labels 192.0.2.1 fqdn:www.example', 'it has more'],
    ['EXPECT name shop www.example 192.0.2.1 grace', 'live'],
    ['EXPECT name shop www.example 192.0.2.2 live', 'gone'],
    ['EXPECT addresses 2', 'one'],
    ['EXPECT identities 0', 'one'],
    ['COUNTER pipeline.exact = 2', 'one'],
    ['COUNTER pipeline.exact >= 2', 'one'],
    ['COUNTER pipeline.exact + 0', 'not looked at before'],
    ['OPEN shop 192.0.2.2:443', 'a connection that is dropped'],
  ]
  for (const [step, reason] of rows) {
    assert.throws(() => runScenario(`${START}${step}`, 'a.scn'), faultAt(LAST_LINE), reason)
  }
})

test('runScenario refuses what it does not know, with file and line', () => {
  const rows: readonly (readonly [step: string, reason: string])[] = [
    ['EXPECTS answer NOERROR', 'no such step'],
    ['expect answer NOERROR', 'not in capitals'],
    ['EXPECT rain', 'nothing of that name'],
    ['EXPECT packet nobody 192.0.2.1:443 drop', 'no such endpoint'],
    ['EXPECT packet shop 192.0.2.1 drop', 'no port'],
    ['COUNTER pipeline.nothing = 0', 'no such counter'],
    ['COUNTER pipeline.exact = many', 'no number'],
    ['QUERY shop www.example NONE', 'no such type'],
    ['QUERY shop www.example A udp', 'no such option'],
    ['QUERY nobody www.example A', 'no such endpoint'],
    ['TIME_PASSES soon', 'no duration'],
    ['KERNEL refuses everything', 'no such refusal'],
    ['MODE open', 'no such mode'],
    ['POLICY other.yaml gone', 'no such file'],
    ['POLICY other.yaml\n  kind: Nonsense', 'a policy with faults'],
    ['ENDPOINTS\n  endpoints: [{ name: shop }]', 'an endpoint with faults'],
    ['CONFIG\n  dns: {}', 'too late'],
  ]
  for (const [step, reason] of rows) {
    assert.throws(() => runScenario(`${START}${step}`, 'a.scn'), faultAt(LAST_LINE), reason)
  }
  for (const line of [
    'www.example: 192.0.2.1',
    'www.example A: 192.0.2',
    'www.example A: AFTER x',
  ]) {
    const text = `${START}UPSTREAM\n  # a comment\n  ${line}`
    assert.throws(() => runScenario(text, 'a.scn'), faultAt(LAST_LINE + 2), line)
  }
  assert.throws(() => runScenario(START, 'a.scn'), /a\.scn:1: expects nothing/)
  assert.throws(
    () => runScenario(START.slice(START.indexOf('\n')), 'a.scn'),
    /a\.scn:1: expected a/,
  )
})

function faultAt(line: number): (error: unknown) => boolean {
  return (error) => error instanceof ScenarioFault && error.message.startsWith(`a.scn:${line}: `)
}
