// The connection table of a network namespace of its own. Flows with port 53 are deleted and no others, and a redirected flow has the
// server that its client asked. The kernel makes the entries from real datagrams on loopback and a real redirect.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { createSocket, type RemoteInfo, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { test } from 'node:test'
import { parseAddress, type Family } from '../../../src/core/ip.ts'
import { UDP } from '../../../src/core/protocol.ts'
import {
  openConntrack,
  type Conntrack,
  type Flow,
} from '../../../src/native/netfilter/conntrack.ts'
import { isBuilt, loadPosix } from '../../../src/native/native.ts'
import { makeRules, pinnedFlags } from '../../../src/daemon/open-interception.ts'
import { at, mkPlan } from '../../support/labs/intercept-plans.ts'
import { canUseLab } from '../../support/labs/lab.ts'

const LISTENER = 5353
const RULES = `table inet test {
  chain output {
    type nat hook output priority -100
    udp dport { 53, 54 } redirect to :${LISTENER}
  }
}`

/** The kernel tracks connections only if a rule needs it. */
const TRACKING = `table inet test {
  chain output {
    type filter hook output priority 0
    ct state new accept
  }
}`

const skip = canUseLab() ?? (isBuilt('conntrack') ? false : 'the native part is not built')

test('Conntrack finds, lists and deletes flows of the kernel', { skip }, async (t) => {
  assert.equal(loadPosix().unshareNetwork(), 0)
  execFileSync('ip', ['link', 'set', 'lo', 'up'])
  execFileSync('ip', ['-6', 'address', 'add', 'fd00::9/128', 'dev', 'lo', 'nodad'])
  execFileSync('nft', ['-f', '-'], { input: RULES })
  const opened = openConntrack()
  assert.equal(opened.kind, 'open')
  if (opened.kind !== 'open') return
  const { table } = opened

  for (const [family, asked, own] of [
    [4, '127.0.0.9', '127.0.0.1'],
    [6, 'fd00::9', '::1'],
  ] as const) {
    await t.test(`dump has both directions of a redirected flow over IPv${family}`, async () => {
      const query = await redirected(family, asked)
      const octets = (text: string) => parseAddress(text)?.octets ?? new Uint8Array(16)
      const { address, port } = query.from
      const found: Flow[] = []
      const visit = (flow: Flow) => void (flow.reply.targetPort === port && found.push(flow))
      assert.equal(table.dump(visit), 0)
      assert.equal(found.length, 1)
      assert.deepEqual(found[0]?.original, {
        source: octets(address),
        target: octets(asked),
        sourcePort: port,
        targetPort: 53,
      })
      assert.deepEqual(found[0]?.reply, {
        source: octets(own),
        target: octets(address),
        sourcePort: LISTENER,
        targetPort: port,
      })
      assert.equal(table.probe(), 0, 'a missing flow is no fault')
      query.close()
    })
  }

  await t.test('flushPort deletes flows with the port and leaves the others', async () => {
    const queries = [
      await redirected(4, '127.0.0.9', 53),
      await redirected(4, '127.0.0.9', 54),
      await redirected(6, 'fd00::9', 53),
    ]
    assert.deepEqual(portsOf(table), [53, 54])
    const gone = table.flushPort(53, [UDP], [4, 6])
    assert.ok(gone >= 2, `gone: ${gone}`)
    assert.deepEqual(portsOf(table), [54])
    assert.equal(table.flushPort(53, [UDP], [4, 6]), 0)
    for (const each of queries) each.close()
  })

  await t.test('flushPort empties a table with more entries than one read returns', async () => {
    const socket = createSocket('udp4')
    for (let i = 0; i < 1500; i++) {
      const address = `127.1.${i >> 8}.${i & 255}`
      await new Promise((sent) => socket.send('x', 53, address, sent))
    }
    socket.close()
    let count = 0
    assert.equal(
      table.dump(({ original }) => void (count += original.targetPort === 53 ? 1 : 0)),
      0,
    )
    assert.equal(count, 1500)
    assert.equal(table.flushPort(53, [UDP], [4]), 1500)
    assert.deepEqual(portsOf(table), [54])
  })
  await t.test('intercept up and down leave no flow with port 53', async () => {
    execFileSync('nft', ['-f', '-'], { input: `flush ruleset\n${TRACKING}` })
    const plan = mkPlan({ listeners: `{ port: ${LISTENER}, mode: redirect }` })
    const rules = makeRules(pinnedFlags(undefined))
    const count = () => {
      let found = 0
      const visit = ({ original }: Flow) => void (found += original.targetPort === 53 ? 1 : 0)
      assert.equal(table.dump(visit), 0)
      return found
    }
    const lost = createSocket('udp4')
    await new Promise((sent) => lost.send('x', 53, '127.0.0.9', sent))
    lost.close()
    assert.equal(count(), 1, 'a flow from before')
    assert.deepEqual(await rules.up(plan, at()), [])
    assert.equal(count(), 0)
    const query = await redirected(4, '127.0.0.9')
    query.close()
    assert.equal(count(), 1, 'a redirected flow')
    assert.deepEqual(await rules.up(plan, at()), [])
    assert.equal(count(), 1, 'its answer can be outstanding')
    assert.deepEqual(await rules.down(), { removed: true, notes: [] })
    assert.equal(count(), 0)
  })
  table.close()
})

/** The asked ports, each once. */
function portsOf(table: Conntrack): readonly number[] {
  const flows: Flow[] = []
  assert.equal(
    table.dump((flow) => void flows.push(flow)),
    0,
  )
  assert.ok(flows.every(({ reply, protocol }) => protocol === UDP && reply.sourcePort === LISTENER))
  return [...new Set(flows.map(({ original }) => original.targetPort))].toSorted((a, b) => a - b)
}

/** Sends one datagram from its own socket to a server that does not exist. Returns it as the listener received it. */
async function redirected(
  family: Family,
  address: string,
  port = 53,
): Promise<{ readonly from: RemoteInfo; close(): void }> {
  const type = family === 4 ? 'udp4' : 'udp6'
  const listener: Socket = createSocket(type)
  listener.bind(LISTENER, family === 4 ? '127.0.0.1' : '::1')
  await once(listener, 'listening')
  const client = createSocket(type)
  client.send('query', port, address)
  const [, from]: [Buffer, RemoteInfo] = await (once(listener, 'message') as Promise<
    [Buffer, RemoteInfo]
  >)
  listener.close()
  return { from, close: () => void client.close() }
}
