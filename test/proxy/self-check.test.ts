// A self-check is answered when the datapath has confirmed a commit that was made for it.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LOCAL, type LocalAnswer } from '../../src/dns/codes.ts'
import { QueryView } from '../../src/dns/query.ts'
import { MessageBatch } from '../../src/proxy/messages/batch.ts'
import { systemRandom } from '../../src/core/random.ts'
import { SelfCheck } from '../../src/proxy/self-check.ts'
import { mkSlow } from '../support/nodes/slow-node.ts'
import { queryFor } from '../support/peers/upstream.ts'
import { addDatagram } from '../support/datagram.ts'

const CLIENT = new Uint8Array(16)

function mkCheck() {
  const { node, slow } = mkSlow()
  const told: LocalAnswer[] = []
  const responder = {
    refuse: (_batch: MessageBatch, _i: number, _view: QueryView, answer: LocalAnswer) =>
      void told.push(answer),
  }
  const { committer } = node.core
  const check = new SelfCheck({ random: systemRandom, committer, responder })
  const ask = (): void => {
    const batch = new MessageBatch({ capacity: 1 })
    addDatagram(batch, { channel: 0, family: 4, peer: CLIENT, port: 40_000 }, check.query)
    check.take(batch, 0)
  }
  return { slow, told, check, ask }
}

function read(octets: Uint8Array): QueryView {
  const view = new QueryView()
  assert.equal(view.read(octets, 0, octets.length), 'ok')
  return view
}

test('SelfCheck answers when the datapath has confirmed its commit, however many ask meanwhile', () => {
  const { slow, told, check, ask } = mkCheck()
  ask()
  ask()
  assert.deepEqual(told, [], 'the commit is not confirmed yet')
  slow.drain()
  assert.deepEqual(told, [LOCAL.alive, LOCAL.alive])
  ask()
  assert.equal(told.length, 2, 'each check needs a commit of its own time')
  slow.drain()
  assert.equal(told.length, 3)
  assert.deepEqual(check.counters, { asked: 3, answered: 3 })
})

test('SelfCheck never answers while the datapath hangs', () => {
  const { told, check, ask } = mkCheck()
  for (let i = 0; i < 40; i++) ask()
  assert.deepEqual(told, [])
  assert.deepEqual(check.counters, { asked: 40, answered: 0 })
})

test('SelfCheck recognizes only its own question', () => {
  const { check } = mkCheck()
  const own = read(check.query)
  assert.equal(check.isOurs(own), true)
  const other = mkCheck().check.query
  assert.equal(check.isOurs(read(other)), false, 'the question of another daemon')
  assert.equal(check.isOurs(read(queryFor('www.example', { id: 1 }))), false)
  const text = Buffer.from(check.query.subarray(13, 45)).toString()
  assert.match(text, /^[0-9a-f]{32}$/)
  const upper = `${text}.NAMEGATE.invalid`
  assert.equal(check.isOurs(read(queryFor(upper, { id: 1 }))), true, 'in another letter case')
  assert.equal(check.isOurs(read(queryFor(upper, { id: 1, type: 'AAAA' }))), false)
})
