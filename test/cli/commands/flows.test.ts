// `namegate flows`: filters, formats, columns, and the output that only a terminal gets.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { parse, parseAllDocuments } from 'yaml'
import { FLOW_SCHEMAS } from '../../../src/admin/document/flow-shapes.ts'
import { FLOW_FILTERS } from '../../../src/admin/views/flows.ts'
import { FLOW_KINDS } from '../../../src/flows/record/flow-kinds.ts'
import { AdminServer } from '../../../src/admin/server.ts'
import { systemClock } from '../../../src/core/clock.ts'
import { UsageError } from '../../../src/core/errors.ts'
import { mkAdmin } from '../../support/nodes/admin.ts'
import {
  mkTerminal,
  namegate,
  objectIn,
  runCommand,
  runCommandOn,
} from '../../support/nodes/command.ts'
import { mkDnsFlow } from '../../support/nodes/dns-flow.ts'
import { mkEndpoint, Node, prefixOf } from '../../support/nodes/node.ts'

const flowsCommand = namegate('flows')
const folder = mkdtempSync(join(tmpdir(), 'namegate-flows-'))
const socket = join(folder, 'admin.sock')
const node = new Node()
node.setEndpoints([mkEndpoint('shop', ['10.0.0.1']), mkEndpoint('mail', ['10.0.0.2'])])
async function* kept(): AsyncIterable<string> {
  const old = {
    time: '2001-01-01T00:00:00.000Z',
    verdict: 'deny',
    endpoint: 'gone',
    client: '10.0.0.9',
  }
  yield `${JSON.stringify({ ...old, kind: 'denied', name: 'old.test', type: 'A', rules: [], count: 7, last: '2001-01-01T00:01:00.000Z' })}\n`
  yield `${JSON.stringify({ ...old, kind: 'drop', protocol: 'TCP', port: 443, peer: '198.18.0.9', names: ['b.test'] })}\n`
  yield `${JSON.stringify({ ...old, kind: 'drop', protocol: 'ICMP', port: 0, peer: '198.19.0.9', names: [] })}\n`
  yield `${JSON.stringify({ ...old, kind: 'lost', verdict: 'event', count: 3 })}\n`
  await Promise.resolve()
}
const { state } = mkAdmin(node, { clock: systemClock, keptFlows: { read: kept } })
const server = new AdminServer({ state, socket, onError: (error) => assert.ifError(error) })
await server.start()
const began = systemClock.wall()
const denied = mkDnsFlow('evil.test', { kind: 'denied' })
for (let i = 0; i < 3; i++) state.flows.addDns(began - 125_000 + i, denied)
state.flows.addDns(began - 120_000, mkDnsFlow('www.test', { kind: 'answered', endpoint: 2 }))
state.flows.addDns(began - 70_000, denied)
const packet = { endpoint: 1, family: 4, peer: prefixOf('198.18.0.9').octets, identity: 9, rule: 0 }
state.flows.addPacket(began - 1500, {
  ...{ ...packet, kind: 'drop', protocol: 6, port: 443, names: ['b.test'], reason: 'policy' },
})
after(async () => {
  await server.stop()
  rmSync(folder, { recursive: true })
})

async function flows(...args: readonly string[]): Promise<string> {
  const { code, out, err } = await runCommand(flowsCommand, ...args, '--socket', socket)
  assert.deepEqual([code, err], [0, ''], args.join(' '))
  return out
}

/** Removes the escape sequences of colours. */
function plain(text: string): string {
  // oxlint-disable-next-line no-control-regex
  return text.replaceAll(/\u001b\[\d+m/g, '')
}

test('flowsCommand filters the flows of the daemon and those on disk, with --not', async () => {
  const rows: readonly (readonly [line: string, kinds: string, reason: string])[] = [
    ['', 'denied drop drop lost denied denied denied answered denied drop', 'no filter'],
    ['--verdict deny', 'denied drop drop denied denied denied denied drop', 'a verdict'],
    ['--not --verdict deny', 'answered', 'the count of lost flows is no flow'],
    ['--name b.test', 'drop drop', 'names of peers, on disk too'],
    ['--protocol icmp', 'drop', 'a protocol without ports, on disk'],
    ['--name *.test --not --name evil.test', 'denied drop answered drop', 'both'],
    ['--port 443 --protocol tcp', 'drop drop', 'packets'],
    ['--address 198.18.0.0/16', 'drop drop', 'a prefix'],
    ['--endpoint mail --endpoint shop', 'denied denied denied answered denied drop', 'either'],
    ['--kept --endpoint gone', 'denied drop drop', 'an endpoint of the past, on disk'],
    ['--last 2 --verdict denied', 'denied denied', 'the last two that match'],
    ['--since 60s', 'drop', 'flows of the last time'],
  ]
  for (const [line, kinds, reason] of rows) {
    const out = await flows(...line.split(' ').filter((word) => word !== ''), '-o', 'json')
    const found = out.split('\n').filter((each) => each !== '')
    assert.equal(found.map((each) => String(objectIn(each)['kind'])).join(' '), kinds, reason)
  }
})

test('flowsCommand says on stderr that there is no flow', async () => {
  const rows: readonly (readonly [line: string, err: string, reason: string])[] = [
    ['--name no.test', 'namegate: no recorded flow matches these options\n', 'no match'],
    ['--kept --name no.test', 'namegate: no recorded flow matches these options\n', 'on disk'],
    ['--name no.test -o json', '', 'a program reads the output'],
  ]
  for (const [line, err, reason] of rows) {
    const ran = await runCommand(flowsCommand, ...line.split(' '), '--socket', socket)
    assert.deepEqual([ran.code, ran.out, ran.err], [0, '', err], reason)
  }
})

test('flowsCommand refuses filters that can match no flow, before and after it asked the daemon', async () => {
  const rows: readonly (readonly [line: string, fault: RegExp])[] = [
    ['--port 53 --verdict denied', /^namegate: no flow can match: only flows of kind drop, audit/],
    ['--not --follow', /^namegate: --not must be in front of a filter, found --follow\n/],
    ['--verdict deny --not', /^namegate: --not must be in front of a filter\n/],
    ['--verdct deny', /did you mean --verdict\?/],
    ['--kind drop', /^namegate: unknown option "--kind"; did you mean --verdict\?\n/],
    ['--not-verdict deny', /"--not-verdict"; did you mean --not --verdict\?\n/],
    ['--no-verdict deny', /"--no-verdict"; did you mean --not --verdict\?\n/],
    [
      'verdict deny',
      /^namegate: flows takes no argument, found "verdict": write --verdict VALUE\n/,
    ],
    [
      'not --verdict deny',
      /no argument, found "not": write --not in front of a filter, such as --not --/,
    ],
    ['--not verdict deny', /no argument, found "verdict": write --not --verdict VALUE\n/],
    ['!verdict deny', /no argument, found "!verdict": write --not --verdict VALUE\n/],
    ['--verdict !deny', /--verdict: found "!deny": write --not --verdict deny\n/],
    ['something', /^namegate: flows takes no argument, found "something"\n/],
    [
      '--verdict denyd',
      /^namegate: --verdict: found "denyd"; did you mean deny\? The words are:\n  allow +\S/,
    ],
    [
      '--not --verdict maybe',
      /^namegate: --not --verdict: found "maybe"\. The words are:\n  allow +\S/,
    ],
    [
      '--columns tme',
      /^namegate: --columns: found "tme"; did you mean time\? The columns are time, /,
    ],
    ['-o json --columns time', /^namegate: --columns has no effect with -o json\n/],
    ['-o xml', /^namegate: -o: found xml, expected json, yaml, wide, compact\n/],
    ['--color maybe', /^namegate: --color: found "maybe", expected auto, always, never\n/],
    ['--time late', /^namegate: --time: found "late", expected relative, clock, absolute\n/],
  ]
  for (const [line, fault] of rows) {
    const { code, out, err } = await runCommand(flowsCommand, ...line.split(' '))
    assert.deepEqual([code, out], [2, ''], line)
    assert.match(err, fault)
  }
  await assert.rejects(flows('--endpoint', 'shp'), (error) => {
    assert.ok(error instanceof UsageError)
    assert.equal(error.message, 'no endpoint is named "shp"; did you mean shop?')
    return true
  })
})

test('flowsCommand writes columns, YAML and JSON', async () => {
  const columns = await flows('--last', '1', '--columns', 'verdict, endpoint,name,port')
  assert.equal(
    columns,
    `${'VERDICT  ENDPOINT'.padEnd(25)}${'NAME'.padEnd(30)}PORT\n${'deny     shop'.padEnd(25)}${'b.test'.padEnd(30)}443\n`,
  )
  const wide = await flows('--last', '2', '-o', 'wide')
  assert.match(wide, /^TIME +VERDICT +KIND +ENDPOINT +ADDRESS +NAME .* RULES\n\d{4}-/)
  const last = objectIn(await flows('--last', '1', '-o', 'json'))
  assert.deepEqual(parse(await flows('--last', '1', '-o', 'yaml')), last)
  assert.equal(parseAllDocuments(await flows('--last', '3', '-o', 'yaml')).length, 3)
})

test('flowsCommand folds equal flows, and writes colours and relative times, on a terminal only', async () => {
  const args = ['--last', '6', '--socket', socket]
  const shown = await runCommandOn(mkTerminal(80), flowsCommand, ...args, '--color', 'always')
  const begin = '\u001b[2m 2m ago\u001b[0m \u001b[31mdeny \u001b[0m shop '
  assert.equal(shown.out.slice(0, begin.length), begin)
  const lines = plain(shown.out).split('\n')
  assert.equal(lines.length, 4)
  assert.match(
    lines[0] ?? '',
    /^ 2m ago deny {2}shop +A evil\.test denied.*, 4 times, last 1m ago$/,
  )
  assert.match(lines[1] ?? '', /^ 2m ago allow mail +A www\.test NOERROR/)
  assert.match(
    lines[2] ?? '',
    /^ +\d+[sm] ago deny {2}shop +TCP 198\.18\.0\.9:443 \(b\.test\) dropped/,
  )
  const each = await runCommandOn(mkTerminal(80), flowsCommand, ...args, '--no-fold')
  assert.equal(each.out.split('\n').length, 7)
  const piped = await flows('--last', '6')
  assert.equal(piped.split('\n').length, 7)
  assert.match(piped, /^\d{4}-\d\d-\d\dT/)
  assert.equal(plain(piped), piped)
})

test('flowsCommand writes no colours where NO_COLOR is set', async () => {
  const before = process.env['NO_COLOR']
  process.env['NO_COLOR'] = '1'
  try {
    const { out } = await runCommandOn(
      mkTerminal(80),
      flowsCommand,
      '--last',
      '1',
      '--socket',
      socket,
    )
    assert.equal(plain(out), out)
  } finally {
    if (before === undefined) delete process.env['NO_COLOR']
    else process.env['NO_COLOR'] = before
  }
})

test('flowsCommand explains each word of --verdict, in the help and for a wrong word', async () => {
  const words = [...FLOW_SCHEMAS.DnsFlow.unwrap().shape.verdict.options, ...FLOW_KINDS]
  const help = (await runCommand(flowsCommand, '--help')).out
  const wrong = (await runCommand(flowsCommand, '--verdict', 'nothing')).err
  for (const word of words) {
    assert.match(help, new RegExp(`^  ${word} +\\S`, 'm'), 'the values of the JSON fields')
    assert.match(wrong, new RegExp(`^  ${word} +\\S`, 'm'))
  }
  assert.deepEqual([...new Set(words)].sort(), [...FLOW_FILTERS].sort())
})
