// The OpenAPI document of the admin API, made from a table of paths and the schemas of shapes.ts.

import { z } from 'zod'
import { SCHEMAS } from './shapes.ts'

type SchemaName = keyof typeof SCHEMAS

interface PathText {
  readonly summary: string
  /** Schema of a 200's body: a name under `components`, as a list or alone. */
  readonly list?: SchemaName
  readonly one?: SchemaName
  readonly body?: SchemaName
}

const READ: Readonly<Record<string, PathText>> = {
  '/v1/endpoints': { summary: 'Workloads that policy applies to', list: 'Endpoint' },
  '/v1/policies': { summary: 'Policies with the state of their files', list: 'Policy' },
  '/v1/selectors': { summary: 'Selectors in use and what they select', list: 'Selector' },
  '/v1/names': { summary: 'Names that answers taught, by endpoint', list: 'Name' },
  '/v1/ipcache': { summary: 'Prefixes, their identities, labels and owners', list: 'Prefix' },
  '/v1/identities': { summary: 'Identities in use', list: 'Identity' },
  '/v1/resources': { summary: 'External resources', list: 'Resource' },
  '/v1/datapath': { summary: 'Entries that are enforced now', list: 'Entry' },
  '/v1/status': {
    summary:
      'State of the daemon; realized= waits until that policy revision (a number, or wanted) is, timeout= milliseconds',
    one: 'Status',
  },
  '/v1/verify': { summary: 'Desired state against the datapath', one: 'Verify' },
  '/v1/flows': {
    summary:
      'JSON lines; follow=1 goes on, verdict= takes a verdict or kind, last= so many of the latest',
  },
  '/v1/flows/kept': {
    summary:
      'JSON lines kept on disk, oldest first: flows of a kind with count, time of the first and last; older=1: only those that began before those of /v1/flows',
  },
  '/v1/openapi.json': { summary: 'This document' },
}

const CHANGE: Readonly<Record<string, PathText>> = {
  '/v1/audit': { summary: 'Turns audit on or off', body: 'Audit' },
  '/v1/mode': { summary: 'Sets the mode of the datapath', body: 'Mode' },
  '/v1/explain': {
    summary: 'Why an endpoint may or may not ask a name, or connect',
    body: 'Question',
    one: 'Explanation',
  },
  '/v1/ask': {
    summary: 'A DNS query in the name of an endpoint; what the answer teaches is learned',
    body: 'OwnQuestion',
    one: 'OwnAnswer',
  },
  '/v1/detach': { summary: 'Takes all enforcement away and ends the daemon' },
}

/** Paths with a name in them. */
const NAMED: Readonly<Record<string, Readonly<Record<'put' | 'delete', PathText>>>> = {
  '/v1/resources/{name}': {
    put: {
      summary: 'Adds an external resource or changes it; answers when it is in force and kept',
      body: 'ResourceBody',
      one: 'ResourceChange',
    },
    delete: { summary: 'Takes it away again', one: 'ResourceChange' },
  },
}

export function openApi(version: string): object {
  const paths = new Map<string, object>()
  for (const [path, text] of Object.entries(READ)) paths.set(path, { get: operation(text) })
  for (const [path, text] of Object.entries(CHANGE)) paths.set(path, { post: operation(text) })
  for (const [path, methods] of Object.entries(NAMED)) {
    const parameters = [{ name: 'name', in: 'path', required: true, schema: { type: 'string' } }]
    const put = operation(methods.put)
    paths.set(path, { parameters, put, delete: operation(methods.delete) })
  }
  return {
    openapi: '3.1.0',
    info: { title: 'namegate admin API', version },
    paths: Object.fromEntries(paths),
    components: { schemas: jsonSchemas() },
  }
}

function operation({ summary, list, one, body }: PathText): object {
  const schema =
    list !== undefined ? { type: 'array', items: ref(list) } : one !== undefined ? ref(one) : {}
  const answer = { description: 'Done', content: { 'application/json': { schema } } }
  return {
    summary,
    ...(body === undefined
      ? {}
      : { requestBody: { content: { 'application/json': { schema: ref(body) } } } }),
    responses: { 200: answer },
  }
}

function ref(name: SchemaName): object {
  return { $ref: `#/components/schemas/${name}` }
}

/** The schemas as JSON Schema. Fields may be added later, so that none but those that are named is forbidden. */
function jsonSchemas(): object {
  return Object.fromEntries(
    Object.entries(SCHEMAS).map(([name, schema]) => {
      const { $schema: _, ...json } = z.toJSONSchema(schema, { io: 'input', override: simplify })
      return [name, json]
    }),
  )
}

/** Leaves out the bounds of safe integers and the marks of read-only types, which mean nothing to a reader. */
function simplify({ jsonSchema }: { readonly jsonSchema: z.core.JSONSchema.BaseSchema }): void {
  delete jsonSchema.readOnly
  if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum
}
