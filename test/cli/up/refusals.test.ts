// The lines that `namegate up` prints for refusals: one for the first, with the command that allows it, and a count for later ones.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { FlowFields } from '../../../src/cli/flows/flow-fields.ts'
import { Refusals } from '../../../src/cli/up/refusals.ts'
import { waitingText } from '../../../src/cli/up/waiting-text.ts'

const TIME = '2026-01-02T03:04:05.678Z'
const denied = { time: TIME, kind: 'denied', name: 'a.example', type: 'A', reason: null, rules: [] }
const dropped = {
  time: TIME,
  kind: 'drop',
  peer: '198.51.100.9',
  protocol: 'TCP',
  port: 443,
  labels: ['reserved:world-ipv4'],
  names: [],
  deniedBy: 'default',
  rules: [],
}

const LIST = { file: '/run/up.allow', isMade: true } as const

const ROWS: readonly (readonly [why: string, flow: FlowFields, said: RegExp | undefined])[] = [
  [
    'a name',
    denied,
    /^03:04:05 refused  a\.example +no rule allows this name; to allow it on every port: echo a\.example >> \/run\/up\.allow$/,
  ],
  [
    'a name at a server that no query may go to',
    { ...denied, reason: 'server', rules: [{ policy: 'default/no', file: 'no.yaml', line: 3 }] },
    /a\.example +the asked server is refused, not the name; the workload must ask a DNS server on its port 53, and not namegate itself$/,
  ],
  [
    'an address that was asked as a name: a line allows only connections',
    { ...denied, name: '198.51.100.7' },
    /an address, asked as a name: no line allows that; to allow connections to it: echo 198\.51\.100\.7 >> /,
  ],
  [
    'the same of an address with a slip',
    { ...denied, name: '198.51.100.256' },
    /it looks like an address, and is none: .*; no line of a list can allow it$/,
  ],
  [
    'an address without a name',
    dropped,
    /198\.51\.100\.9:443\/tcp +no answer contained this address; .*echo 198\.51\.100\.9:443\/tcp >> \/run\/up\.allow$/,
  ],
  [
    'a guarded address: perhaps an answer contained it, and it opened nothing',
    { ...dropped, peer: '169.254.169.254', port: 80, guarded: true },
    /169\.254\.169\.254:80\/tcp +guarded, so no name opens it; to allow it: echo 169\.254\.169\.254:80\/tcp >> \/run\/up\.allow$/,
  ],
  [
    'IPv6 in brackets, as in the list, and in quotes for the shell',
    { ...dropped, peer: '2001:db8::9', protocol: 'UDP' },
    /echo '\[2001:db8::9\]:443\/udp' >> /,
  ],
  [
    'an address with a name: the port is what is missing',
    { ...dropped, names: ['a.example', 'b.example'] },
    /198\.51\.100\.9:443\/tcp \(a\.example\) .*echo a\.example:443\/tcp >> /,
  ],
  [
    'the node: no name and no address opens it',
    { ...dropped, labels: ['reserved:host'], names: ['a.example'] },
    /an address of this host; .*toEntities: \[host\]/,
  ],
  [
    'a protocol without ports, which a list cannot have',
    { ...dropped, protocol: 'ICMP', port: 0 },
    /198\.51\.100\.9 icmp +no rule allows icmp; .*--policy FILE/,
  ],
  [
    'a deny rule: a line would not help',
    { ...dropped, deniedBy: 'rule', rules: [{ policy: 'default/no', file: 'no.yaml', line: 3 }] },
    /denied by default\/no \(no\.yaml:3\); no allow rule outweighs a deny rule$/,
  ],
  [
    'an address that the workload got after the start: policy did not refuse it, and no line helps',
    { ...dropped, names: ['a.example'], deniedBy: null, reason: 'source' },
    /198\.51\.100\.9:443\/tcp \(a\.example\) +its source is no known address of the workload; if it is a new address of the workload, end this command and start it again$/,
  ],
  [
    'a probe for a neighbour, whose source is a link-local address',
    { ...dropped, protocol: 'ICMPv6', port: 0, deniedBy: null, reason: 'source' },
    /198\.51\.100\.9 icmpv6 +its source is no known address of the workload; harmless if the kernel looks for a neighbour: it repeats that by multicast$/,
  ],
  [
    'a packet without an address that can be read',
    { ...dropped, peer: '0.0.0.0', protocol: '0', port: 0, deniedBy: null, reason: 'malformed' },
    /a malformed packet +its headers cannot be read; no line of a list can allow it$/,
  ],
  [
    'a later fragment: it has no port, so a line with a port does not allow it',
    { ...dropped, protocol: 'UDP', port: 0, names: ['a.example'], reason: 'fragment' },
    /198\.51\.100\.9 udp \(a\.example\) +a later fragment, which has no port; only a line or rule without a port allows it$/,
  ],
  [
    'a reason of a later version',
    { ...dropped, deniedBy: null, reason: 'weather' },
    /198\.51\.100\.9:443\/tcp +dropped: weather; no line of a list can allow it$/,
  ],
  [
    'a packet that policy refused, with the reason that daemons send',
    { ...dropped, reason: 'policy' },
    /no answer contained this address; .*echo 198\.51\.100\.9:443\/tcp >> /,
  ],
  [
    'a client that is no endpoint: its address changed',
    { time: TIME, kind: 'unknown-client', client: '10.0.0.9', name: 'a.example' },
    /a query from 10\.0\.0\.9 .*end this command and start it again$/,
  ],
  [
    'a name with characters that a terminal would act on',
    { ...denied, name: 'a\u001b[31m.example' },
    /a\\u\{1b\}\[31m\.example/,
  ],
  [
    'a name with a command of the shell: nothing of it can be copied',
    { ...denied, name: '$(reboot).example' },
    /no line of a list can allow it$/,
  ],
  [
    'a name with a star: the line would be a pattern, and allow more',
    { ...denied, name: '*.example' },
    /no line of a list can allow it$/,
  ],
  [
    'a query that was sent before interception was in force: port 53 is a way around names',
    { ...dropped, protocol: 'UDP', port: 53 },
    /198\.51\.100\.9:53\/udp +the packet reached no listener of namegate; DNS goes through namegate/,
  ],
  ['an allowed name is no refusal', { ...denied, kind: 'forwarded' }, undefined],
  ['a fault of a server is no refusal', { ...denied, kind: 'upstream-failed' }, undefined],
]

for (const [why, flow, said] of ROWS) {
  test(`Refusals prints ${why}`, () => {
    const line = new Refusals(LIST).take(flow)
    if (said === undefined) assert.equal(line, undefined)
    else assert.match(line ?? '', said)
  })
}

test('Refusals counts repetitions, whatever their type, and reports each count once', () => {
  const refusals = new Refusals(LIST)
  assert.ok(refusals.take(denied) !== undefined)
  for (const type of ['AAAA', 'A', 'HTTPS']) {
    assert.equal(refusals.take({ ...denied, type }), undefined)
  }
  assert.ok(refusals.take(dropped) !== undefined)
  assert.equal(refusals.take(dropped), undefined)
  const [name, packet, ...more] = refusals.repeated()
  assert.match(name ?? '', /again +a\.example +3 more times$/)
  assert.match(packet ?? '', /again +198\.51\.100\.9:443\/tcp +1 more time$/)
  assert.deepEqual([more, refusals.repeated()], [[], []])
})

test('Refusals names the workload from the first flow of another one on, and counts each workload by itself', () => {
  const refusals = new Refusals(LIST, 'box')
  const own = { ...denied, endpoint: 'box' }
  const other = { ...denied, endpoint: 'job' }
  assert.match(refusals.take(own) ?? '', /refused  a\.example /)
  assert.match(refusals.take(other) ?? '', /refused  job: a\.example +no rule allows this name/)
  for (const flow of [own, other, other]) assert.equal(refusals.take(flow), undefined)
  const again = refusals.repeated().map((line) => line.trim().replace(/ +/g, ' '))
  assert.deepEqual(again, ['again box: a.example 1 more time', 'again job: a.example 2 more times'])
  assert.match(refusals.take({ ...dropped, endpoint: 'box' }) ?? '', /refused  box: 198\.51/)
  const unknown = { time: TIME, kind: 'unknown-client', client: '10.0.0.9', endpoint: null }
  assert.match(refusals.take(unknown) ?? '', /refused  a query from 10\.0\.0\.9/)
})

test('Refusals reports of each flow if it was refused or only audited, while audit is switched on and off', () => {
  const refusals = new Refusals(LIST)
  const rows = [
    [denied, /^\S+ refused  a\.example/],
    [{ ...denied, kind: 'audited' }, /^\S+ would be refused \(audit\)  a\.example/],
    [{ ...dropped, kind: 'audit' }, /^\S+ would be refused \(audit\)  198\.51\.100\.9:443/],
    [dropped, /^\S+ refused  198\.51\.100\.9:443/],
  ] as const
  for (const [flow, said] of rows) assert.match(refusals.take(flow) ?? '', said)
  for (const [flow] of rows) assert.equal(refusals.take(flow), undefined)
  const again = refusals.repeated().map((line) => line.trim().replace(/ +/g, ' '))
  assert.deepEqual(again, [
    'again a.example 1 more time',
    'again (audit) a.example 1 more time',
    'again (audit) 198.51.100.9:443/tcp 1 more time',
    'again 198.51.100.9:443/tcp 1 more time',
  ])
})

test('Refusals aligns the counts of audited refusals with their lines', () => {
  const refusals = new Refusals(LIST)
  const audited = { ...dropped, kind: 'audit' }
  const column = refusals.take(audited)?.indexOf('198.51')
  refusals.take(audited)
  assert.equal(refusals.repeated()[0]?.indexOf('198.51'), column)
})

test('Refusals proposes one line for a name that was refused as a query and as a connection', () => {
  const refusals = new Refusals(LIST)
  refusals.take({ ...denied, kind: 'audited' })
  const audited = { ...dropped, kind: 'audit' }
  assert.match(
    refusals.take({ ...audited, names: ['a.example'] }) ?? '',
    /\(a\.example\) +no rule allows this name on this port; to allow only this port, and not every port: echo a\.example:443\/tcp >> \/run\/up\.allow$/,
  )
  assert.match(
    refusals.take({ ...audited, names: ['b.example'] }) ?? '',
    /no rule allows this name on this port; to allow it: echo b\.example:443/,
  )
})

test('Refusals prints each reason for which packets to one place were dropped', () => {
  const refusals = new Refusals(LIST)
  const foreign = { ...dropped, deniedBy: null, reason: 'source' }
  assert.match(refusals.take(foreign) ?? '', /no known address of the workload/)
  assert.match(refusals.take({ ...dropped, reason: 'policy' }) ?? '', /to allow it/)
  assert.equal(refusals.take(foreign), undefined)
})

test('Refusals remembers a bounded number, and prints a forgotten one again', () => {
  const refusals = new Refusals(LIST)
  for (let i = 0; i <= 1000; i++) refusals.take({ ...denied, name: `n${i}.example` })
  assert.equal(refusals.take({ ...denied, name: 'n1000.example' }), undefined)
  assert.ok(refusals.take({ ...denied, name: 'n0.example' }) !== undefined)
})

test('Refusals appends nothing to a list of the user, which can end without a line break', () => {
  const list = { file: '/srv/box.allow', isMade: false }
  const line = new Refusals(list).take(denied)
  assert.match(
    line ?? '',
    /to allow it on every port: add the line a\.example to \/srv\/box\.allow$/,
  )
})

test('waitingText does not alarm while a DNS server has not answered yet', () => {
  const unanswered = 'no upstream has answered yet'
  assert.match(
    waitingText([unanswered], '9.9.9.9:53'),
    /^still starting: no answer from 9\.9\.9\.9:53 to /,
  )
  assert.equal(waitingText(['the daemon starts'], ''), 'not ready yet: the daemon starts')
  const both = ['policy is not loaded', unanswered]
  assert.equal(waitingText(both, ''), `not ready yet: ${both.join('; ')}`)
})
