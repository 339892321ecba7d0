import assert from 'node:assert/strict'
import { test } from 'node:test'
import { loadPolicies } from '../../src/policy/load/load.ts'
import { addressRemedy } from '../../src/policy/allow-text.ts'
import { ASK_AGAIN } from '../../src/policy/dns-connection.ts'
import type { ConnectionRecord, NameRecord } from '../../src/sandbox/record.ts'
import { suggestPolicy } from '../../src/sandbox/suggest.ts'
import {
  hasRefusals,
  refusalLine,
  summaryOf,
  summaryRows,
  summaryTitle,
} from '../../src/sandbox/summary.ts'

function mkRecords(names: readonly NameRecord[], connections: readonly ConnectionRecord[]) {
  return {
    names: new Map(names.map((each) => [each.name, each])),
    connections: new Map(connections.map((each, i) => [String(i), each])),
    lost: 0,
  }
}

function mkConnection(given: Partial<ConnectionRecord>): ConnectionRecord {
  const names = new Set<string>()
  return {
    address: '192.0.2.1',
    protocol: 'TCP',
    port: 443,
    packets: 1,
    verdict: 'made',
    names,
    isGuarded: false,
    ...given,
  }
}

const OTHER_PROTOCOL =
  'a file for --policy can allow this protocol (toFQDNs or toCIDR without toPorts)'

const SEEN = mkRecords(
  [
    { name: 'www.example.com', asked: 2, verdict: 'allowed', isService: false },
    { name: 'tracker.example', asked: 3, verdict: 'denied', isService: false },
    { name: 'lost.example', asked: 1, verdict: 'failed', isService: false },
    { name: 'a b.example', asked: 1, verdict: 'audited', isService: false },
    { name: '192.0.2.256', asked: 1, verdict: 'denied', isService: false },
    { name: '192.0.2.7', asked: 1, verdict: 'denied', isService: false },
  ],
  [
    mkConnection({ names: new Set(['www.example.com']) }),
    mkConnection({
      port: 8080,
      verdict: 'refused',
      packets: 4,
      names: new Set(['www.example.com']),
    }),
    mkConnection({ address: '2001:db8::9', port: 80, verdict: 'refused' }),
    mkConnection({ address: '169.254.169.254', port: 80, verdict: 'refused', isGuarded: true }),
    mkConnection({ address: '192.0.2.9', protocol: '1', port: 0, verdict: 'refused' }),
    mkConnection({
      address: '192.0.2.53',
      protocol: 'UDP',
      port: 53,
      verdict: 'refused',
      names: new Set(['dns.example']),
    }),
  ],
)

test('summaryTitle says of an audited run that nothing was refused', () => {
  assert.equal(summaryTitle(false), 'names asked, connections refused')
  assert.match(summaryTitle(true), /would refuse \(--audit refused none\)$/)
})

test('summaryRows say what was refused and which option would allow it', () => {
  assert.deepEqual(summaryRows(summaryOf(SEEN)), [
    ['192.0.2.256', 'denied', '1', addressRemedy('192.0.2.256') ?? ''],
    ['192.0.2.7', 'denied', '1', addressRemedy('192.0.2.7') ?? ''],
    ['a b.example', 'audited', '1', ''],
    ['lost.example', 'failed', '1', ''],
    ['tracker.example', 'denied', '3', '--allow tracker.example'],
    ['www.example.com', 'allowed', '2', ''],
    ['192.0.2.53:53/udp', 'refused', '1', ASK_AGAIN],
    ['192.0.2.1:8080/tcp', 'refused', '4', '--allow www.example.com:8080/tcp'],
    [
      '169.254.169.254:80/tcp',
      'refused',
      '1',
      'guarded, so no name opens it: --allow 169.254.169.254:80/tcp, or a file for --policy (toCIDR; toEntities: host for this host)',
    ],
    ['192.0.2.9 1', 'refused', '1', `no name was answered with this address: ${OTHER_PROTOCOL}`],
    [
      '[2001:db8::9]:80/tcp',
      'refused',
      '1',
      'no name was answered with this address: --allow [2001:db8::9]:80/tcp',
    ],
  ])
})

test('summaryOf and suggestPolicy suggest nothing for a name that was asked for SRV records only', () => {
  const seen = mkRecords(
    [{ name: '_http._tcp.deb.example', asked: 1, verdict: 'denied', isService: true }],
    [],
  )
  assert.deepEqual(summaryRows(summaryOf(seen)), [['_http._tcp.deb.example', 'denied', '1', '']])
  assert.doesNotMatch(suggestPolicy(seen), /_http/)
  assert.equal(hasRefusals(summaryOf(seen)), false)
})

test('hasRefusals is true if an option would allow something, or a connection was refused', () => {
  const rows: readonly (readonly [why: string, given: Parameters<typeof mkRecords>, boolean])[] = [
    ['nothing happened', [[], []], false],
    ['a name was allowed', [[mkName('allowed')], []], false],
    ['a server failed', [[mkName('failed')], []], false],
    ['a name was refused', [[mkName('denied')], []], true],
    ['a name would be refused', [[mkName('audited')], []], true],
    ['a connection was made', [[], [mkConnection({})]], false],
    ['a connection was refused', [[], [mkConnection({ verdict: 'refused' })]], true],
  ]
  for (const [why, given, expected] of rows) {
    assert.equal(hasRefusals(summaryOf(mkRecords(...given))), expected, why)
  }
})

test('refusalLine says what was refused, and what would allow it', () => {
  const names = new Set(['a.example'])
  const rows: readonly (readonly [Parameters<typeof refusalLine>[0], string])[] = [
    [mkName('denied'), 'refused name a.example: --allow a.example'],
    [mkName('audited'), 'would refuse name a.example: --allow a.example'],
    [{ ...mkName('denied'), isService: true }, 'refused name a.example'],
    [
      mkConnection({ verdict: 'refused', names }),
      'refused connection 192.0.2.1:443/tcp: --allow a.example:443/tcp',
    ],
    [
      mkConnection({ verdict: 'audited' }),
      'would refuse connection 192.0.2.1:443/tcp: no name was answered with this address: --allow 192.0.2.1:443/tcp',
    ],
    [
      mkConnection({ verdict: 'refused', names, protocol: 'ICMP', port: 0 }),
      `refused connection 192.0.2.1 ICMP: ${OTHER_PROTOCOL}`,
    ],
  ]
  for (const [record, expected] of rows) assert.equal(refusalLine(record), expected)
})

function mkName(verdict: NameRecord['verdict']): NameRecord {
  return { name: 'a.example', asked: 1, verdict, isService: false }
}

test('suggestPolicy is a policy that the loader takes, and allows what was seen and no more', () => {
  const text = suggestPolicy(SEEN)
  const { policies, faults } = loadPolicies(text, 'suggested.yaml')
  assert.deepEqual(faults, [])
  const [policy] = policies
  assert.deepEqual(
    policy?.rules.map(({ toPorts }) =>
      toPorts?.flatMap(
        ({ ports, dns }) => dns?.map((each) => each.text) ?? ports.map(({ low }) => String(low)),
      ),
    ),
    [
      ['www.example.com', 'tracker.example'],
      ['443', '8080'],
    ],
  )
  assert.match(text, /^# Left out, because no policy can name it: "a b\.example"$/m)
  assert.match(text, /^# Left out, because it is an address: 192\.0\.2\.7$/m)
  assert.match(
    text,
    /^# Left out, because no name was answered with the address: \[2001:db8::9\]:80\/TCP$/m,
  )
})

test('suggestPolicy distinguishes guarded addresses from those without a name', () => {
  assert.match(
    suggestPolicy(SEEN),
    /^# Left out, because its address is guarded: 169\.254\.169\.254:80\/TCP$/m,
  )
})

test('suggestPolicy of nothing denies everything', () => {
  const { policies, faults } = loadPolicies(suggestPolicy(mkRecords([], [])), 'suggested.yaml')
  assert.deepEqual(faults, [])
  assert.equal(policies[0]?.rules.length, 0)
})
