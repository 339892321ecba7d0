// Names that namegate asks before a client does (`dns.prewarm`), through the daemon with real files and sockets, on fake time.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '../support/peers/client.ts'
import { endpointsText, policyText } from '../support/nodes/daemon-files.ts'
import { withLab, type DaemonLab } from '../support/labs/daemon-lab.ts'
import { answerTo, type SeenQuery } from '../support/peers/upstream.ts'

const TICK_MS = 100
const SETTLED_MS = 200
const TTL_S = 60

const FILES = {
  'policy.yaml': policyText('web', ['www.example', 'api.example', '*.many.example']),
  'endpoints.yaml': endpointsText({ one: '127.0.0.1', two: '127.0.0.2' }),
}
const CONFIG = 'dns: { prewarm: true }'
const OPTIONS = { files: FILES, config: CONFIG }

function asked(lab: DaemonLab): readonly string[] {
  const type = (query: SeenQuery): string => query.packet.questions?.[0]?.type ?? ''
  const ours = lab.upstream.queries.filter(({ name }) => name.endsWith('.example'))
  return ours.map((query) => `${query.name} ${type(query)}`).sort()
}

/** Sends the next queries, and waits until this number of answers has taught in all. */
async function warmed(lab: DaemonLab, answers: number): Promise<void> {
  await lab.pass(TICK_MS)
  const { prewarm } = lab.daemon.proxy
  await until(`${answers} answers`, () => prewarm?.counters.answered === answers)
}

test('Prewarm asks the exact names of each endpoint’s policy for the endpoint, before a client does', async () => {
  await withLab(OPTIONS, async (lab) => {
    lab.upstream.behaviour = (query) => query.send(answerTo(query, { ttl: TTL_S }))
    await warmed(lab, 4)
    const names = ['api.example A', 'api.example A', 'www.example A', 'www.example A']
    assert.deepEqual(
      asked(lab),
      names,
      'one of each for each endpoint, by the family of its address',
    )
    assert.equal(lab.daemon.core.names.entries.slots.used, 4)
    assert.equal(lab.daemon.proxy.upstream.inFlight.count, 0)
  })
})

test('Prewarm asks again when a tenth of the TTL is left, not earlier', async () => {
  await withLab(OPTIONS, async (lab) => {
    lab.upstream.behaviour = (query) => query.send(answerTo(query, { ttl: TTL_S }))
    await warmed(lab, 4)
    await lab.pass(TTL_S * 900 - TICK_MS * 2)
    assert.equal(asked(lab).length, 4)
    await lab.pass(TICK_MS)
    await warmed(lab, 8)
    assert.equal(asked(lab).length, 8)
  })
})

test('Prewarm asks over TCP what an endpoint can ask only over TCP', async () => {
  const text = policyText('web', ['www.example']).replace("'53'", "'53', protocol: TCP")
  await withLab({ ...OPTIONS, files: { ...FILES, 'policy.yaml': text } }, async (lab) => {
    lab.upstream.behaviour = (query) => query.send(answerTo(query, { ttl: TTL_S }))
    await warmed(lab, 2)
    assert.deepEqual(asked(lab), ['www.example A', 'www.example A'])
  })
})

test('Prewarm stops asking a name that is no longer in policy, and for a removed endpoint', async () => {
  await withLab(OPTIONS, async (lab) => {
    lab.upstream.behaviour = (query) => query.send(answerTo(query, { ttl: TTL_S }))
    await warmed(lab, 4)
    lab.write('policy.yaml', policyText('web', ['www.example']))
    lab.write('endpoints.yaml', endpointsText({ one: '127.0.0.1' }))
    await lab.pass(SETTLED_MS)
    await lab.pass(TTL_S * 900 - SETTLED_MS)
    await warmed(lab, 5)
    for (let i = 0; i < 10; i++) await lab.pass(TICK_MS)
    assert.equal(asked(lab).filter((each) => each === 'www.example A').length, 3)
    assert.equal(asked(lab).filter((each) => each === 'api.example A').length, 2)
    assert.equal(lab.daemon.proxy.prewarm?.size, 1)
  })
})

test('Prewarm retries names without an address later and later, and sends at most a hundred queries a second', async () => {
  const names = Array.from({ length: 30 }, (_, i) => `n${i}.example`)
  const files = {
    ...FILES,
    'policy.yaml': policyText('web', names),
    'endpoints.yaml': endpointsText({ one: '127.0.0.1' }),
  }
  await withLab({ files, config: CONFIG }, async (lab) => {
    lab.upstream.behaviour = (query) => query.send(answerTo(query, { addresses: [] }))
    const { prewarm } = lab.daemon.proxy
    assert.ok(prewarm !== undefined)
    for (let tick = 1; tick <= 3; tick++) {
      await lab.pass(TICK_MS)
      await until('ten have ended', () => prewarm.counters.unanswered === tick * 10)
      assert.equal(prewarm.counters.asked, tick * 10)
    }
    const before = prewarm.counters.asked
    for (let second = 0; second < 10; second++) {
      for (let i = 0; i < 10; i++) await lab.pass(TICK_MS)
      await until('all have ended', () => prewarm.counters.unanswered === prewarm.counters.asked)
    }
    const again = prewarm.counters.asked - before
    assert.ok(again >= 60 && again <= 120, `${again} tries in 10 s: after 1 s, 2 s and 4 s`)
  })
})

test('Prewarm is off by default', async () => {
  await withLab({ files: FILES }, async (lab) => {
    for (let i = 0; i < 20; i++) await lab.pass(TICK_MS)
    assert.equal(lab.daemon.proxy.prewarm, undefined)
    assert.deepEqual(asked(lab), [])
  })
})
