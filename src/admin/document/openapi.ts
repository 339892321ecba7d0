// Makes the OpenAPI document of the admin API from the table of operations and the schemas of shapes.ts.

import { z } from 'zod'
import { EXAMPLES } from './examples.ts'
import { JSON_TYPE, LINES_TYPE } from '../negotiation.ts'
import { OPERATIONS, type Operation, type SchemaName } from './operations.ts'
import type { Parameter } from './parameters.ts'
import { PROBLEM_TYPE, PROBLEMS } from '../problems.ts'
import { SCHEMAS } from './shapes.ts'

const ABOUT =
  'HTTP over the UNIX socket `admin.socket`. Every error is a problem (RFC 9457), also those that are not listed: 404 for an unknown path, and 405 for another method, with the header Allow.'

export function openApi(version: string): object {
  const paths = new Map<string, Record<string, object>>()
  for (const operation of OPERATIONS) {
    const { path, method } = operation
    paths.set(path, { ...paths.get(path), [method]: operationObject(operation) })
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'namegate admin API',
      description: ABOUT,
      version,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: 'http://admin', description: 'The socket; the host name does not matter' }],
    paths: Object.fromEntries(paths),
    components: { schemas: jsonSchemas(), responses: problemResponses() },
  }
}

const KNOWN_VERSION: Parameter = {
  name: 'If-None-Match',
  in: 'header',
  about: 'ETag of the version that the client has. If there is no other, the answer is 304',
  schema: { type: 'string' },
}
const ETAG = { ETag: { description: 'Names the version', schema: { type: 'string' } } } as const

function operationObject(operation: Operation): object {
  const { id, method, summary, body, problems = [] } = operation
  const isCached = operation.etag === true && method === 'get'
  const parameters = [...(operation.parameters ?? []), ...(isCached ? [KNOWN_VERSION] : [])]
  const content = body === undefined ? undefined : { [JSON_TYPE]: bodyObject(body) }
  const statuses = [406, 500, ...problems, ...(body === undefined ? [] : [400, 413, 415])]
  const responses = new Map<number, object>([[200, answerObject(operation)]])
  if (isCached) responses.set(304, { description: 'The client has this version', headers: ETAG })
  for (const status of statuses.toSorted((a, b) => a - b)) {
    responses.set(status, { $ref: `#/components/responses/${responseName(status)}` })
  }
  return {
    operationId: id,
    summary,
    ...(parameters.length === 0 ? {} : { parameters: parameters.map(parameterObject) }),
    ...(content === undefined ? {} : { requestBody: { required: true, content } }),
    responses: Object.fromEntries(responses),
  }
}

function parameterObject({ name, in: place, about, schema }: Parameter): object {
  return { name, in: place, description: about, required: place === 'path', schema }
}

function answerObject({ answer, etag }: Operation): object {
  if ('lines' in answer) {
    const content = { [LINES_TYPE]: bodyObject(answer.lines) }
    return { description: 'Done. The schema is that of one line', content }
  }
  const media =
    'list' in answer
      ? { schema: { type: 'array', items: ref(answer.list) }, example: [EXAMPLES[answer.list]] }
      : 'one' in answer
        ? bodyObject(answer.one)
        : { schema: { type: 'object' } }
  const headers = etag === true ? { headers: ETAG } : {}
  return { description: 'Done', ...headers, content: { [JSON_TYPE]: media } }
}

function bodyObject(name: SchemaName): object {
  return { schema: ref(name), example: EXAMPLES[name] }
}

/** One response for each status of a problem. */
function problemResponses(): object {
  const titles = new Map<number, string[]>()
  for (const [kind, { status, title }] of Object.entries(PROBLEMS)) {
    if (kind === 'unknown-path') continue
    titles.set(status, [...(titles.get(status) ?? []), title])
  }
  const content = { [PROBLEM_TYPE]: { schema: ref('Problem') } }
  return Object.fromEntries(
    [...titles].map(([status, words]) => [
      responseName(status),
      { description: words.join('. Or: '), content },
    ]),
  )
}

function responseName(status: number): string {
  return `Problem${status}`
}

function ref(name: SchemaName): object {
  return { $ref: pointerOf(name) }
}

function pointerOf(name: string): string {
  return `#/components/schemas/${name}`
}

/** The schemas as JSON Schema. They allow unknown fields, because later versions can add fields. */
function jsonSchemas(): object {
  const registry = z.registry<{ id: string }>()
  for (const [id, schema] of Object.entries(SCHEMAS)) registry.add(schema, { id })
  const { schemas } = z.toJSONSchema(registry, { io: 'input', uri: pointerOf, override: simplify })
  return Object.fromEntries(
    Object.entries(schemas).map(([name, { $schema: _schema, $id: _id, ...json }]) => [name, json]),
  )
}

/** Removes the bounds of safe integers and the marks of read-only types, which have no meaning for a reader. */
function simplify({ jsonSchema }: { readonly jsonSchema: z.core.JSONSchema.BaseSchema }): void {
  delete jsonSchema.readOnly
  if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum
}
