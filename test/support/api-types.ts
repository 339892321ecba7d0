// Makes src/client/api-types.ts from the OpenAPI document: the objects of the admin API, and the options and answer of each request.
// `npm run reference` writes the file, and test/reference.test.ts compares it.

import { openApi } from '../../src/admin/document/openapi.ts'
import { isMapping } from '../../src/documents/source-document.ts'
import { formatted } from './formatted.ts'
import { member, members, text } from './markdown.ts'

export const API_TYPES = 'src/client/api-types.ts'

const HEAD = `// The objects and requests of the admin API as types. Made from the OpenAPI document by \`npm run reference\`; edit src/admin/ instead.
`

/** The text of the file. */
export async function apiTypes(): Promise<string> {
  const document = openApi('')
  const schemas = members(member(document, 'components'), 'schemas').map(
    ([name, schema]) => `export type ${name} = ${typeOf(schema)}\n`,
  )
  const operations = members(document, 'paths').flatMap(([path, methods]) =>
    Object.entries(isMapping(methods) ? methods : {}).map(([method, operation]) => {
      const doc = `/** ${text(operation, 'summary')}. */\n`
      return `${doc}readonly '${method.toUpperCase()} ${path}': ${operationType(operation)}`
    }),
  )
  const all = `/** Every request: its options, and its \`answer\`, or the \`row\` of which its answer has many. */
export interface Operations {\n${operations.join('\n')}\n}\n`
  return await formatted(API_TYPES, [HEAD, ...schemas, all].join('\n'))
}

function operationType(operation: unknown): string {
  const content = member(member(operation, 'requestBody'), 'content')
  const body = member(member(content, 'application/json'), 'schema')
  const fields = [
    ...parametersType(operation, 'path', 'path', ''),
    ...parametersType(operation, 'query', 'query', '?'),
    ...parametersType(operation, 'header', 'headers', '?'),
    ...(body === undefined ? [] : [`readonly body: ${typeOf(body)}`]),
    ...answerFields(operation),
  ]
  return `{\n${fields.join('\n')}\n}`
}

function parametersType(
  operation: unknown,
  place: string,
  name: string,
  mark: string,
): readonly string[] {
  const parameters = member(operation, 'parameters')
  const list: readonly unknown[] = Array.isArray(parameters) ? parameters : []
  const lines = list
    .filter((each) => text(each, 'in') === place)
    // The client has no cache, so it cannot use a 304.
    .filter((each) => !text(each, 'description').includes('304'))
    .map((each) => {
      const doc = `/** ${text(each, 'description')}. */\n`
      return `${doc}readonly '${text(each, 'name')}'${mark}: ${typeOf(member(each, 'schema'))}`
    })
  return lines.length === 0 ? [] : [`readonly ${name}${mark}: {\n${lines.join('\n')}\n}`]
}

function answerFields(operation: unknown): readonly string[] {
  const content = member(member(member(operation, 'responses'), '200'), 'content')
  const line = member(member(content, 'application/x-ndjson'), 'schema')
  if (line !== undefined) return [`readonly row: ${typeOf(line)}`]
  const schema = member(member(content, 'application/json'), 'schema')
  const row = member(schema, 'items')
  const answer = `readonly answer: ${typeOf(schema)}`
  return row === undefined ? [answer] : [answer, `readonly row: ${typeOf(row)}`]
}

function typeOf(schema: unknown): string {
  const of = isMapping(schema) ? schema : {}
  const named = text(of, '$ref').split('/').at(-1) ?? ''
  if (named !== '') return named
  if ('const' in of) return JSON.stringify(of['const'])
  if (Array.isArray(of['enum'])) return of['enum'].map((word) => JSON.stringify(word)).join(' | ')
  if (Array.isArray(of['allOf'])) return of['allOf'].map((part) => `(${typeOf(part)})`).join(' & ')
  const parts = of['anyOf'] ?? of['oneOf']
  if (Array.isArray(parts)) return parts.map(typeOf).join(' | ')
  const kinds: readonly unknown[] = Array.isArray(of['type']) ? of['type'] : [of['type']]
  return kinds.map((kind) => kindOf(kind, of)).join(' | ')
}

function kindOf(kind: unknown, of: Readonly<Record<string, unknown>>): string {
  switch (kind) {
    case 'integer':
      return 'number'
    case 'array':
      return `readonly (${typeOf(of['items'])})[]`
    case 'object':
      return bodyOf(of)
    case 'string':
    case 'number':
    case 'boolean':
    case 'null':
      return kind
    default:
      throw new Error(`Cannot write a type: received ${JSON.stringify(of)}`)
  }
}

function bodyOf(of: Readonly<Record<string, unknown>>): string {
  const { properties, required, additionalProperties } = of
  if (!isMapping(properties)) {
    const values = isMapping(additionalProperties) ? typeOf(additionalProperties) : 'unknown'
    return `Readonly<Record<string, ${values}>>`
  }
  const lines = Object.entries(properties).map(([key, value]) => {
    const about = text(value, 'description')
    const doc = about === '' ? '' : `/** ${about}. */\n`
    const isRequired = Array.isArray(required) && required.includes(key)
    return `${doc}readonly '${key}'${isRequired ? '' : '?'}: ${typeOf(value)}`
  })
  return `{\n${lines.join('\n')}\n}`
}
