// Slow servers and floods do not multiply the packets to servers.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { RETRY_STOCK, RetryBudget } from '../../../src/proxy/upstream/retry-policy.ts'
import { until } from '../../support/peers/client.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { socketClock } from '../../support/peers/forwarder.ts'
import { testSockets } from '../../support/sockets.ts'
import { answerTo, queryFor, type SeenQuery } from '../../support/peers/upstream.ts'

test('RetryBudget has a stock for the failure of a server, and then one retry for four answers', () => {
  const budget = new RetryBudget()
  let taken = 0
  while (budget.take()) taken++
  assert.equal(taken, RETRY_STOCK)
  for (let i = 0; i < 400; i++) budget.answered()
  taken = 0
  while (budget.take()) taken++
  assert.equal(taken, 100)
  for (let i = 0; i < 10 * RETRY_STOCK; i++) budget.answered()
  assert.equal(budget.stock, RETRY_STOCK, 'never more than the stock')
})

testSockets(
  'Upstream asks a server once for each query when it knows that the server takes 2 s',
  async (net) => {
    const time = new FakeClock()
    const held: { readonly query: SeenQuery; readonly due: number }[] = []
    const server = await net.serve((query) => {
      if (query.name !== '') held.push({ query, due: time.now() + 2000 })
    })
    const forwarder = await net.forward([server], { clock: socketClock(time) })
    const client = await net.udpClient(forwarder)
    const rounds = 40
    for (let round = 0; round < rounds; round++) {
      client.send(queryFor(`n${round}.test`, { id: round }))
      await until('the query', () => server.queries.some(({ name }) => name === `n${round}.test`))
      time.advance(200)
      const due = held.filter((one) => one.due <= time.now())
      for (const one of due) {
        held.splice(held.indexOf(one), 1)
        one.query.send(answerTo(one.query))
      }
      await until('what was answered', () => {
        // Two late answers can share one place of the table. One of them then counts as unexpected.
        const { answers, late, unexpected } = forwarder.upstream.counters
        return answers + late + unexpected === server.queries.length - held.length
      })
    }
    await sleep(20)
    const asked = (round: number): number =>
      server.queries.filter(({ name }) => name === `n${round}.test`).length
    for (let round = rounds - 15; round < rounds; round++) assert.equal(asked(round), 1, `${round}`)
    assert.ok(server.queries.length < 1.5 * rounds, `${server.queries.length} for ${rounds}`)
  },
)

testSockets('Upstream repeats over TCP, whatever the number of mismatches before', async (net) => {
  // Another question, not another id: the id could be that of another query, which would then be suspected.
  const server = await net.serve((query) => {
    query.send(answerTo(query, query.transport === 'udp' ? { name: 'other.test' } : {}))
  })
  server.forgetful = true
  const forwarder = await net.forward([server])
  const client = await net.udpClient(forwarder)
  const [batch, count] = [100, 4500]
  for (let i = 0; i < count; i += batch) {
    const queries = Array.from({ length: batch }, (_, k) => queryFor(`n${k}.test`, { id: i + k }))
    await client.ask(...queries)
  }
  const { mismatchRepeats, repeatsDenied } = forwarder.upstream.attempts.counters
  assert.deepEqual({ mismatchRepeats, repeatsDenied }, { mismatchRepeats: count, repeatsDenied: 0 })
})
