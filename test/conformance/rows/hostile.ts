// docs/spec/correctness 2: hostile names (A9, A31), guarded addresses (A16), truncated messages (A19), forged sources (A24).

import assert from 'node:assert/strict'
import { Agent } from '../lab/agent-client.ts'
import { UdpClient } from '../lab/clients.ts'
import {
  assertSame,
  FORMERR,
  localAnswer,
  NOERROR,
  rcodeOf,
  SERVFAIL,
  withId,
} from '../lab/replies.ts'
import { answerTo } from '../lab/upstream.ts'
import { ALLOWED, ONE_TRANSPORT, REFUSED, SELECTOR, type World } from '../lab/world.ts'
import { ask, askOpt } from './build.ts'
import { DENIED } from './row.ts'
import { outputIn } from '../../support/labs/intercept-lab.ts'
import { a, aaaa, mkMessage } from '../../support/messages.ts'
import { readExposition } from '../../support/nodes/metrics.ts'

const ODD_LABELS = [
  'a.b',
  '\0',
  '\\',
  '"',
  ' ',
  '\n',
  '\xff',
  '\x1b[31m',
  '*',
  '${x}',
  '<b>',
] as const

export async function hostileNames(world: World): Promise<void> {
  for (const label of ODD_LABELS) {
    const name = [label, ...world.name()]
    for (const transport of ['udp', 'tcp'] as const) {
      const message = mkMessage(ask(name, { id: 1 }))
      // Some of its labels are outside of the pattern's alphabet, so only a rule for everything allows it.
      assert.equal(rcodeOf(await world.ask(transport, message)), 5, JSON.stringify(label))
      const got = await world.ask(transport, message, 'any')
      assert.equal(rcodeOf(got), 0, JSON.stringify(label))
      assertSame(got.subarray(12, message.length), message.subarray(12), 'the name in the answer')
    }
    const asked = world.upstream.asked(name).items
    assert.ok(asked.length >= 2)
    for (const { octets } of asked) {
      assertSame(withId(octets, 1), mkMessage(ask(name, { id: 1 })), 'the query at the server')
    }
  }
  // One label whose text looks like the allowed labels joined.
  const joined = mkMessage(askOpt([`x.${ALLOWED.join('.')}`], {}, { id: 2 }))
  const [text] = [`x.${ALLOWED.join('.')}`]
  const expected = localAnswer(askOpt([text], {}, { id: 2 }), DENIED)
  assertSame(await world.ask('udp', joined), expected, 'a dot inside a label separates nothing')
  readExposition(await world.metrics())
  const log = world.daemon.stdout + world.daemon.stderr
  for (const octet of ['\0', '\x1b', '\xff']) {
    assert.ok(!log.includes(octet), 'the log has no raw octet of a name')
  }
}

/** A name that policy permits over one transport is refused over the other. */
export async function otherTransport(world: World): Promise<void> {
  for (const [permitted, under] of Object.entries(ONE_TRANSPORT)) {
    const query = askOpt(world.name(under), {}, { id: 3 })
    for (const transport of ['udp', 'tcp'] as const) {
      const got = await world.ask(transport, mkMessage(query))
      const what = `permitted over ${permitted}, asked over ${transport}`
      if (transport === permitted) assert.equal(rcodeOf(got), NOERROR, what)
      else assertSame(got, localAnswer(query, DENIED), what)
    }
  }
}

/** Contains PROTECTED. */
const GUARDED_4 = [
  '127.0.0.1',
  '169.254.169.254',
  '0.0.0.0',
  '224.0.0.1',
  '255.255.255.255',
  '192.0.2.1', // of the node
  '10.0.0.1',
  '10.255.255.255',
  '172.16.0.1',
  '172.31.255.255',
  '192.168.0.1',
  '192.168.255.255',
  '100.66.7.8', // of a pod
  '203.0.113.6', // of the API server
]
const LOOPBACK_6 = [0, 0, 0, 0, 0, 0, 0, 1]
const MAPPED = [0, 0, 0, 0, 0, 0xffff, 0xa9fe, 0xa9fe]
const NAT64 = [0x64, 0xff9b, 0, 0, 0, 0, 0x7f00, 1]
const MAPPED_PRIVATE = [0, 0, 0, 0, 0, 0xffff, 0x0a01, 0x0203]
const NAT64_PRIVATE = [0x64, 0xff9b, 0, 0, 0, 0, 0xc0a8, 1]
const SIX_TO_FOUR_POD = [0x2002, 0x6442, 0x0708, 0, 0, 0, 0, 1]
const POD_6 = [0xfd00, 0x66, 0, 0, 0, 0, 0, 7]
const SIX_TO_FOUR = [0x2002, 0xa9fe, 0xa9fe, 0, 0, 0, 0, 1]
const GUARDED_6 = [
  LOOPBACK_6,
  MAPPED,
  NAT64,
  SIX_TO_FOUR,
  MAPPED_PRIVATE,
  NAT64_PRIVATE,
  SIX_TO_FOUR_POD,
  POD_6,
]

export async function guarded(world: World): Promise<void> {
  const before = await world.counter('namegate_', 'guarded')
  const records = [
    ...GUARDED_4.map((address) => (name: readonly string[]) => a(name, address)),
    ...GUARDED_6.map((groups) => (name: readonly string[]) => aaaa(name, groups)),
  ]
  for (const record of records) {
    const name = world.name()
    const harmless = world.address()
    const type = record(name).type
    const answers = [record(name), a(name, harmless)]
    world.upstream.on(name, (asked) => asked.send(answerTo(asked, { answers })))
    const message = mkMessage(ask(name, { id: 4, questions: [{ name, type }] }))
    const got = await world.ask('udp', message)
    const [asked] = world.upstream.asked(name).items
    assert.ok(asked)
    assertSame(got, withId(answerTo(asked, { answers }), 4), 'the answer passes')
    assert.deepEqual(await world.labelsOf(harmless), [`fqdn:${SELECTOR}`])
  }
  const rows = (await world.admin('/v1/ipcache')) as { prefix: string; labels: string[] }[]
  const labelled = rows
    .filter(({ labels }) => labels.some((label) => label.startsWith('fqdn:')))
    .map(({ prefix }) => prefix)
  for (const prefix of labelled)
    assert.match(prefix, /^198\.1[89]\./, 'no other address has a label')
  const after = await world.counter('namegate_', 'guarded')
  assert.ok(after >= before + records.length, `${after - before} were counted`)
}

export async function prefixesOfQueries(world: World): Promise<void> {
  for (const under of [ALLOWED, REFUSED]) {
    for (const transport of ['udp', 'tcp'] as const) {
      const name = world.name(under)
      const whole = mkMessage(askOpt(name))
      const end = transport === 'udp' ? await world.udp() : await world.tcp()
      for (let size = 0; size < whole.length; size++) {
        end.send(withId(whole, size).subarray(0, size))
      }
      end.send(withId(whole, whole.length))
      const count = whole.length - 12 + 1
      await end.inbox.at(count - 1)
      const answers = end.inbox.items.map((item) => (Buffer.isBuffer(item) ? item : item.octets))
      assert.equal(answers.length, count)
      for (const each of answers) {
        const size = each.readUInt16BE(0)
        const expected = size < whole.length ? FORMERR : under === ALLOWED ? 0 : 5
        assert.equal(rcodeOf(each), expected, `${size} of ${whole.length} octets`)
      }
      end.close()
    }
  }
}

export async function prefixesOfAnswers(world: World): Promise<void> {
  const sizes = mkMessage(ask(world.name())).length + 16
  const exchange = async (size: number, transport: 'udp' | 'tcp'): Promise<void> => {
    const name = world.name()
    const address = world.address()
    const query = askOpt(name, {}, { id: 6 })
    world.upstream.on(name, (asked) => {
      const whole = answerTo(asked, { answers: [a(asked.question.name, address)] })
      asked.send(whole.subarray(0, size))
      asked.send(whole)
    })
    const got = await world.ask(transport, mkMessage(query))
    const questionEnd = mkMessage(ask(name)).length
    if (size < questionEnd) assert.equal(rcodeOf(got), 0, `${size} octets: the next answer counts`)
    else assertSame(got, localAnswer(query, { rcode: SERVFAIL, ede: 24 }), `${size} octets`)
    const labels = size < questionEnd ? [`fqdn:${SELECTOR}`] : []
    assert.deepEqual(await world.labelsOf(address), labels)
  }
  for (let size = 0; size < sizes - 1; size++) {
    await Promise.all([exchange(size, 'udp'), exchange(size, 'tcp')])
  }
}

/** The second pod sends from an address of the first. Its own later query shows that the first one was handled. */
export async function spoofed(world: World): Promise<void> {
  const [, other] = world.lab.pods
  assert.ok(other)
  const victim = world.clientAddress('twin0')
  other.host.ip('address', 'add', `${victim}/32`, 'dev', 'eth0')
  if (world.mode === 'explicit') {
    world.lab.node.sysctl(`net.ipv4.conf.${other.interface}.rp_filter=1`)
  }
  const agent = await Agent.start(other.host)
  try {
    const name = world.name()
    const to = world.asked
    const [forger, itself] = [
      await UdpClient.open(agent, victim, to),
      await UdpClient.open(agent, other.address4, to),
    ]
    forger.send(mkMessage(ask(name)))
    const own = askOpt(world.name(), {}, { id: 9 })
    itself.send(mkMessage(own))
    const { octets } = await itself.inbox.at(0)
    assertSame(octets, localAnswer(own, { rcode: 5, ede: 18 }), 'the second pod is no endpoint')
    assert.deepEqual(world.upstream.asked(name).items, [], 'no query was forwarded')
    if (world.mode === 'tproxy') {
      const rules = outputIn(world.lab.node, 'nft', 'list', 'ruleset')
      assert.match(rules, /counter forged \{\s+packets [1-9]/, 'counted')
    }
  } finally {
    await agent.stop()
  }
}
