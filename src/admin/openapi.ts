// Makes the OpenAPI document of the admin API from a table of paths and the schemas of shapes.ts.

import { z } from 'zod'
import { SCHEMAS } from './shapes.ts'

type SchemaName = keyof typeof SCHEMAS

interface PathText {
  readonly summary: string
  /**
   * Schema of the body of a 200 answer: a name under `components`. `list`: the body is a list of such objects. `one`: the body is one
   * object.
   */
  readonly list?: SchemaName
  readonly one?: SchemaName
  readonly body?: SchemaName
}

const READ: Readonly<Record<string, PathText>> = {
  '/v1/endpoints': {
    summary: 'Lists the endpoints: the workloads to which policy applies',
    list: 'Endpoint',
  },
  '/v1/policies': { summary: 'Lists the policies, with the state of their files', list: 'Policy' },
  '/v1/selectors': {
    summary: 'Lists the selectors in use, with the identities that each selects',
    list: 'Selector',
  },
  '/v1/names': { summary: 'Lists the names learned from answers, by endpoint', list: 'Name' },
  '/v1/ipcache': {
    summary: 'Lists the prefixes, with their identities, labels and owners',
    list: 'Prefix',
  },
  '/v1/identities': { summary: 'Lists the identities in use', list: 'Identity' },
  '/v1/resources': { summary: 'Lists the external resources', list: 'Resource' },
  '/v1/datapath': {
    summary: 'Lists the entries that the datapath enforces at present',
    list: 'Entry',
  },
  '/v1/status': {
    summary:
      'Returns the state of the daemon. realized=N waits until the datapath enforces policy revision N (wanted: the newest one), at most timeout= milliseconds',
    one: 'Status',
  },
  '/v1/verify': {
    summary: 'Lists the differences between the wanted entries and those of the datapath',
    one: 'Verify',
  },
  '/v1/flows': {
    summary:
      'Returns the latest flows, as JSON lines. follow=1 continues with new flows; verdict= selects a verdict or kind; last=N selects the last N flows',
  },
  '/v1/flows/kept': {
    summary:
      'Returns the flows kept on disk, as JSON lines, oldest first. Equal flows are one line with a count and the times of the first and last. older=1 selects those that began before the flows of /v1/flows',
  },
  '/v1/openapi.json': { summary: 'Returns this document' },
}

const CHANGE: Readonly<Record<string, PathText>> = {
  '/v1/audit': { summary: 'Turns audit on or off', body: 'Audit', one: 'AuditResult' },
  '/v1/mode': { summary: 'Sets the mode of the datapath', body: 'Mode' },
  '/v1/explain': {
    summary: 'Explains why an endpoint can or cannot ask for a name, or connect',
    body: 'Question',
    one: 'Explanation',
  },
  '/v1/ask': {
    summary: 'Sends a DNS query in the name of an endpoint, and learns addresses from its answer',
    body: 'OwnQuestion',
    one: 'OwnAnswer',
  },
  '/v1/detach': { summary: 'Removes all enforcement and ends the daemon' },
}

/** Paths that contain a name. */
const NAMED: Readonly<Record<string, Readonly<Record<'put' | 'delete', PathText>>>> = {
  '/v1/resources/{name}': {
    put: {
      summary:
        'Adds or changes an external resource. The response comes when the resource is in force and saved',
      body: 'ResourceBody',
      one: 'ResourceChange',
    },
    delete: { summary: 'Removes an external resource', one: 'ResourceChange' },
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

/** The schemas as JSON Schema. They allow unknown fields, because later versions can add fields. */
function jsonSchemas(): object {
  return Object.fromEntries(
    Object.entries(SCHEMAS).map(([name, schema]) => {
      const { $schema: _, ...json } = z.toJSONSchema(schema, { io: 'input', override: simplify })
      return [name, json]
    }),
  )
}

/** Removes the bounds of safe integers and the marks of read-only types, which have no meaning for a reader. */
function simplify({ jsonSchema }: { readonly jsonSchema: z.core.JSONSchema.BaseSchema }): void {
  delete jsonSchema.readOnly
  if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum
}
