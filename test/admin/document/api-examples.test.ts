// The examples of the OpenAPI document, which docs/api.md shows: every body has one, which fits its schema.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EXAMPLES } from '../../../src/admin/document/examples.ts'
import { openApi } from '../../../src/admin/document/openapi.ts'
import { SCHEMAS } from '../../../src/admin/document/shapes.ts'
import { decodeMessage } from '../../../src/dns/codec.ts'
import { ApiDocument } from '../../support/api-document.ts'
import { member, members } from '../../support/markdown.ts'

/** The document about itself is too long for an example. */
const WITHOUT = ['getDocument']
const TYPES = ['application/json', 'application/x-ndjson']

test('every answer of the OpenAPI document has an example that fits its schema', () => {
  const api = new ApiDocument()
  for (const [path, methods] of members(openApi(''), 'paths')) {
    for (const [method, operation] of Object.entries(methods ?? {})) {
      if (WITHOUT.includes(String(member(operation, 'operationId')))) continue
      const content = member(member(member(operation, 'responses'), '200'), 'content')
      const [type = ''] = TYPES.filter((each) => member(content, each) !== undefined)
      const example = member(member(content, type), 'example')
      const text = JSON.stringify(example) ?? ''
      const faults = api.faults(method.toUpperCase(), path, {
        status: 200,
        type,
        text,
        headers: {},
      })
      assert.deepEqual([example === undefined, faults], [false, []], `${method} ${path}`)
    }
  }
})

test('every body of a request has an example, and each example has the fields of its schema', () => {
  for (const [name, example] of Object.entries(EXAMPLES)) {
    const schema = Object.entries(SCHEMAS).find(([each]) => each === name)?.[1]
    assert.deepEqual(schema?.parse(example), example, name)
  }
  for (const { method, path, hasBody } of new ApiDocument().operations) {
    const operation = member(member(member(openApi(''), 'paths'), path), method.toLowerCase())
    const content = member(member(operation, 'requestBody'), 'content')
    const example = member(member(content, 'application/json'), 'example')
    assert.equal(example !== undefined, hasBody, `${method} ${path}`)
  }
})

test('the examples of POST /v1/ask are a question and its answer', () => {
  const texts = [EXAMPLES.OwnQuestion?.query, EXAMPLES.OwnAnswer?.answer]
  const read = texts.map((text) => {
    const octets = Buffer.from(text ?? '', 'base64')
    const decoded = decodeMessage(octets, 0, octets.length)
    return decoded.kind === 'ok' ? decoded.message : assert.fail(`${text} is no message`)
  })
  const [question, answer] = read
  assert.deepEqual(question?.questions, answer?.questions)
  assert.equal(answer?.answers.length, 1)
})
