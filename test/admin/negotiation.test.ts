import assert from 'node:assert/strict'
import { test } from 'node:test'
import { accepts, isJson } from '../../src/admin/negotiation.ts'

test('accepts finds the most specific range of the header Accept', () => {
  const rows: readonly (readonly [header: string | undefined, accepts: boolean, reason: string])[] =
    [
      [undefined, true, 'no header'],
      ['', true, 'an empty header'],
      ['*/*', true, 'every type'],
      ['application/json', true, 'the type'],
      ['Application/JSON; charset=utf-8', true, 'the case and parameters do not matter'],
      ['text/html, application/*;q=0.1', true, 'a range of the type'],
      ['text/html', false, 'another type'],
      ['application/json;q=0, */*', false, 'the type is excluded, others are accepted'],
      ['application/*;q=0, application/json', true, 'the type outweighs its range'],
      ['*/*;q=0', false, 'every type is excluded'],
      ['application/json;q=x', false, 'no weight'],
    ]
  for (const [header, isAccepted, reason] of rows) {
    assert.equal(accepts(header, 'application/json'), isAccepted, reason)
  }
})

test('isJson accepts JSON, bodies without a type, and the type that curl sends', () => {
  const rows: readonly (readonly [header: string | undefined, isRead: boolean, reason: string])[] =
    [
      [undefined, true, 'no header'],
      ['application/json', true, 'JSON'],
      ['application/json; charset=utf-8', true, 'with a parameter'],
      ['application/merge-patch+json', true, 'a form of JSON'],
      ['application/x-www-form-urlencoded', true, 'curl -d'],
      ['text/plain', false, 'a type that a page of another origin can send'],
      ['multipart/form-data; boundary=x', false, 'a form with files'],
    ]
  for (const [header, isRead, reason] of rows) assert.equal(isJson(header), isRead, reason)
})
