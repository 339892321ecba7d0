import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  EndpointVerdicts,
  SERIES_MAX,
  type EndpointCounts,
} from '../../src/flows/record/endpoint-verdicts.ts'
import { FLOW_KINDS, type FlowKind } from '../../src/flows/record/flow-kinds.ts'

function add(verdicts: EndpointVerdicts, endpoint: number, ...kinds: readonly FlowKind[]): void {
  for (const kind of kinds) verdicts.add(FLOW_KINDS.indexOf(kind), endpoint)
}

function endpoints(...ids: readonly number[]): readonly { id: number; name: string }[] {
  return ids.map((id) => ({ id, name: `e${id}` }))
}

/** The counts of one endpoint, or of all endpoints that share counts. */
function countsOf(verdicts: EndpointVerdicts, name?: string): EndpointCounts | undefined {
  return [...verdicts.read()].find((counts) => counts.name === name)
}

test('EndpointVerdicts counts each kind of flow in its column', () => {
  const rows: readonly (readonly [
    kind: FlowKind,
    dns: readonly number[],
    packets: readonly number[],
    reason: string,
  ])[] = [
    ['answered', [1, 0, 0, 0, 0], [0, 0], 'an answer of any outcome'],
    ['denied', [0, 1, 0, 0, 0], [0, 0], 'policy'],
    ['audited', [0, 0, 1, 0, 0], [0, 0], 'policy would deny'],
    ['upstream-failed', [0, 0, 0, 1, 0], [0, 0], 'no server'],
    ['overloaded', [0, 0, 0, 0, 1], [0, 0], 'a bound'],
    ['not-ready', [0, 0, 0, 0, 1], [0, 0], 'no policy yet'],
    ['malformed', [0, 0, 0, 0, 1], [0, 0], 'unreadable'],
    ['drop', [0, 0, 0, 0, 0], [1, 0], 'a packet'],
    ['audit', [0, 0, 0, 0, 0], [0, 1], 'a packet that policy would drop'],
    ['expired-use', [0, 0, 0, 0, 0], [0, 0], 'no verdict'],
  ]
  for (const [kind, dns, packets, reason] of rows) {
    const verdicts = new EndpointVerdicts()
    verdicts.keep(endpoints(7))
    add(verdicts, 7, kind)
    add(verdicts, 0, kind)
    assert.deepEqual(countsOf(verdicts, 'e7'), { name: 'e7', dns, packets }, reason)
    assert.deepEqual(countsOf(verdicts)?.dns, [0, 0, 0, 0, 0], 'an unknown client has no row')
  }
})

test('EndpointVerdicts has a row for each known endpoint, and none for a removed one', () => {
  const verdicts = new EndpointVerdicts()
  verdicts.keep(endpoints(1, 2))
  add(verdicts, 1, 'denied')
  add(verdicts, 2, 'answered')
  verdicts.keep(endpoints(2, 3))
  assert.deepEqual(
    [...verdicts.read()].map(({ name, dns }) => [name, dns[0], dns[1]]),
    [
      ['e2', 1, 0],
      ['e3', 0, 0],
      [undefined, 0, 0],
    ],
  )
  add(verdicts, 1, 'denied')
  assert.equal(countsOf(verdicts)?.dns[1], 1, 'a late flow of a removed endpoint')
})

test('EndpointVerdicts lets endpoints over the bound share counts, until a row is free', () => {
  const verdicts = new EndpointVerdicts()
  const many = Array.from({ length: SERIES_MAX + 2 }, (_, i) => i + 1)
  verdicts.keep(endpoints(...many))
  assert.equal(verdicts.leftOut, 2)
  const last = SERIES_MAX + 2
  add(verdicts, SERIES_MAX, 'drop')
  add(verdicts, last, 'drop', 'drop')
  assert.deepEqual(countsOf(verdicts, `e${SERIES_MAX}`)?.packets, [1, 0])
  assert.equal(countsOf(verdicts, `e${last}`), undefined)
  assert.deepEqual(countsOf(verdicts)?.packets, [2, 0])
  verdicts.keep(endpoints(...many.slice(2)))
  assert.equal(verdicts.leftOut, 0)
  add(verdicts, last, 'drop')
  assert.deepEqual(countsOf(verdicts, `e${last}`)?.packets, [1, 0], 'from zero')
  assert.deepEqual(countsOf(verdicts)?.packets, [2, 0], 'shared counts stay')
})

test('EndpointVerdicts keeps the total of endpoints that share counts and of removed ones', () => {
  const verdicts = new EndpointVerdicts()
  verdicts.keep(endpoints(1, 2))
  add(verdicts, 1, 'audited', 'audit')
  add(verdicts, 2, 'audited')
  add(verdicts, 3, 'audited')
  const total = { name: undefined, dns: [0, 0, 3, 0, 0], packets: [0, 1] }
  assert.deepEqual(verdicts.total(), total)
  verdicts.keep(endpoints(2))
  assert.deepEqual(verdicts.total(), total)
})
