import assert from 'node:assert/strict'
import { test } from 'node:test'
import { describeInterception } from '../../src/intercept/interception.ts'
import type { InterceptionState } from '../../src/intercept/interception.ts'

const rows: readonly (readonly [state: InterceptionState, text: RegExp | undefined])[] = [
  [{ kind: 'off' }, undefined],
  [{ kind: 'absent' }, /^no rules: .*namegate intercept up$/],
  [{ kind: 'in-force', notes: [] }, /^in force$/],
  [{ kind: 'in-force', notes: ['without IPv6'] }, /^in force; without IPv6$/],
  [{ kind: 'other', about: 'port 10054' }, /port 10054; namegate intercept up$/],
  [{ kind: 'failed', reason: 'nft is missing' }, /^not in force: nft is missing$/],
]

test('describeInterception says what stands and what to do', () => {
  for (const [state, text] of rows) {
    const line = describeInterception({ state, counters: { repairs: 0 } })
    if (text === undefined) assert.equal(line, undefined)
    else assert.match(line ?? '', text, state.kind)
  }
})

test('describeInterception says how often something was put back', () => {
  const state: InterceptionState = { kind: 'in-force', notes: ['without IPv6'] }
  const line = (repairs: number) => describeInterception({ state, counters: { repairs } })
  assert.equal(line(1), 'in force; put back once; without IPv6')
  assert.equal(line(2), 'in force; put back 2 times; without IPv6')
})
