// `flows` and `top` about a refusal by an allow-list: no line of the list allows it, and the output has the line that would.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { FlowFields } from '../../src/cli/flows/flow-fields.ts'
import { byRules, formatFlow, formatRules } from '../../src/cli/flows/flow-text.ts'

const LIST = { policy: 'web', file: '/etc/web.allow' }
const RULE = { policy: 'default/web', file: 'web.yaml', line: 12 }
const query = { kind: 'denied', name: 'evil.test', type: 'A', reason: null, client: '10.0.0.1' }
const packet = {
  kind: 'drop',
  peer: '203.0.113.9',
  protocol: 'TCP',
  port: 443,
  names: [],
  labels: ['reserved:world-ipv4'],
  deniedBy: 'default',
  reason: 'policy',
}

const ROWS: readonly (readonly [why: string, flow: FlowFields, said: string])[] = [
  [
    'a name: the line is the name',
    { ...query, rules: [LIST] },
    'A evil.test denied: no line of /etc/web.allow allows it (add evil.test for every port, or evil.test:PORT), client 10.0.0.1',
  ],
  [
    'an address that was asked as a name: no line lets the query pass',
    { ...query, name: '203.0.113.7', rules: [LIST] },
    '/etc/web.allow allows it (203.0.113.7 is an address: ',
  ],
  [
    'a packet: the line has the port',
    { ...packet, rules: [LIST] },
    'dropped: policy: no line of /etc/web.allow allows it (add 203.0.113.9:443/tcp); identity',
  ],
  [
    'a guarded address: an answer with it opens nothing, and the line with the address does',
    { ...packet, peer: '169.254.169.254', port: 80, guarded: true, rules: [LIST] },
    'TCP 169.254.169.254:80 (guarded, so no name opens it) dropped: policy: no line of /etc/web.allow allows it (add 169.254.169.254:80/tcp); identity',
  ],
  [
    'a guarded address that a document opened to a name: the name counts',
    { ...packet, guarded: true, names: ['meta.test'], rules: [LIST] },
    'TCP 203.0.113.9:443 (meta.test) dropped',
  ],
  [
    'an address of an expired answer: a line can allow its name, so no list is named',
    { ...packet, expiredName: 'www.test', rules: [LIST] },
    '(the answer of www.test with this address has expired: ask the name again) dropped: policy; identity',
  ],
  [
    'a DNS server: no line is proposed',
    { ...packet, protocol: 'UDP', port: 53, rules: [LIST] },
    'no line of /etc/web.allow allows it (DNS goes through namegate',
  ],
  [
    'an address of an endpoint, which no line can allow',
    { ...packet, labels: ['k8s:app=b'], rules: [LIST] },
    'no line of /etc/web.allow allows it; identity',
  ],
  [
    'a protocol without ports: no port, and what allows it',
    { ...packet, protocol: 'ICMP', port: 0, rules: [LIST] },
    'ICMP 203.0.113.9 dropped: policy: no line of /etc/web.allow allows it (a policy rule without toPorts allows it)',
  ],
  [
    'a server that is refused, and not the name',
    { ...query, reason: 'server', rules: [RULE] },
    'A evil.test denied (the asked server is refused, not the name) by default/web (web.yaml:12), client',
  ],
  [
    'a policy keeps its place',
    { ...query, rules: [RULE] },
    'A evil.test denied by default/web (web.yaml:12), client',
  ],
]

for (const [why, flow, said] of ROWS) {
  test(`formatFlow prints ${why}`, () => {
    const line = formatFlow({ time: '2026-01-02T03:04:05.678Z', verdict: 'deny', ...flow })
    assert.ok(line.includes(said), line)
    assert.doesNotMatch(line, /web\.allow:1/)
  })
}

test('formatFlow explains an outcome that keeps addresses of an answer closed', () => {
  const answered = { kind: 'answered', verdict: 'allow', name: 'a.test', type: 'A', addresses: 0 }
  for (const [outcome, said] of [
    ['exact', 'A a.test NOERROR, no address learned'],
    [
      'degraded',
      'degraded (an address is guarded, or a bound was reached: it opens less or nothing), no address learned',
    ],
    [
      'held-out',
      'held-out (the kernel refused an entry, or did not confirm it in time), no address learned',
    ],
  ] as const) {
    const line = formatFlow({ ...answered, rcode: 'NOERROR', outcome })
    assert.ok(line.includes(said), line)
  }
})

test('formatRules and byRules give a list no place in its file', () => {
  assert.equal(formatRules([RULE, LIST]), 'default/web (web.yaml:12), /etc/web.allow')
  assert.equal(
    byRules([RULE, LIST]),
    ' by default/web (web.yaml:12): no line of /etc/web.allow allows it',
  )
  assert.equal(byRules([]), '')
})
