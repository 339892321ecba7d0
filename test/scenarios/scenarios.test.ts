// Every .scn file here is a test; README.md describes the format. The other tests are about the runner itself: a scenario with a wrong
// expectation fails at the right line.

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

test('runScenario passes with the beginning that the next test uses', () => {
  runScenario(`${START}EXPECT answer NOERROR 192.0.2.1`, 'a.scn')
})

test('runScenario fails at the line whose expectation is wrong', () => {
  const rows: readonly (readonly [step: string, reason: string])[] = [
    ['EXPECT answer NOERROR 192.0.2.2', 'another address'],
    ['EXPECT answer NOERROR', 'one address more'],
    ['EXPECT answer NOERROR 192.0.2.1 192.0.2.2', 'one address less'],
    ['EXPECT answer SERVFAIL 192.0.2.1', 'another RCODE'],
    ['EXPECT answer NOERROR 192.0.2.1 EDE 15', 'no such error'],
    ['EXPECT answer NOERROR TC 192.0.2.1', 'not truncated'],
    ['EXPECT no-answer', 'an answer has arrived'],
    ['EXPECT packet shop 192.0.2.1:443 drop', 'allowed'],
    ['EXPECT packet shop 192.0.2.2:443 allow', 'dropped'],
    ['EXPECT packet shop 192.0.2.2:443 audit', 'dropped, not audited'],
    ['EXPECT data shop 192.0.2.1:443 drop', 'on an open connection'],
    ['EXPECT labels 192.0.2.1 none', 'labels'],
    ['EXPECT labels 192.0.2.1 fqdn:www.example', 'more labels'],
    ['EXPECT name shop www.example 192.0.2.1 grace', 'live'],
    ['EXPECT name shop www.example 192.0.2.2 live', 'gone'],
    ['EXPECT addresses 2', 'one'],
    ['EXPECT identities 0', 'one'],
    ['COUNTER pipeline.exact = 2', 'one'],
    ['COUNTER pipeline.exact >= 2', 'one'],
    ['COUNTER pipeline.exact + 0', 'not checked before'],
    ['OPEN shop 192.0.2.2:443', 'a denied connection'],
  ]
  for (const [step, reason] of rows) {
    assert.throws(() => runScenario(`${START}${step}`, 'a.scn'), faultAt(LAST_LINE), reason)
  }
})

test('runScenario refuses unknown words, with file and line', () => {
  const rows: readonly (readonly [step: string, reason: string])[] = [
    ['EXPECTS answer NOERROR', 'no such step'],
    ['expect answer NOERROR', 'not in capitals'],
    ['EXPECT rain', 'no such expectation'],
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
