// Makes docs/api.md from the OpenAPI document: each request with its parameters, body and answers, and every object.

import { openApi } from '../../src/admin/document/openapi.ts'
import { code, member, members, page, table, text } from './markdown.ts'

export const API_PAGE = 'docs/api.md'

const INTRO = `The admin API is HTTP over the UNIX socket \`admin.socket\`. \`GET /v1/openapi.json\` serves the OpenAPI document from which this page is
made. A field with \`?\` can be missing. Later versions can add fields.

- A list is a JSON array with one object in each line. Flows are JSON lines: one object in each line, without an array around them.
- The body of a request is JSON of at most 64 KiB. Its type is \`application/json\`; a body without a type, or with the type that \`curl -d\`
  sends, is read as JSON too.
- Every error is a \`Problem\` of the type \`application/problem+json\` (RFC 9457). Any request can get 404 for an unknown path, 405 with the
  header \`Allow\` for another method, 406 if the header \`Accept\` excludes the type of the answer, and 500 for a fault of the daemon.`

export function apiPage(): string {
  const document = openApi('')
  const operations = members(document, 'paths').flatMap(([path, methods]) =>
    ['get', 'post', 'put', 'delete'].flatMap((method) => {
      const operation = member(methods, method)
      return operation === undefined ? [] : [{ name: `${method.toUpperCase()} ${path}`, operation }]
    }),
  )
  const list = operations.map(({ name, operation }) => {
    const bodies = [bodyOf(operation), answerOf(operation)]
    return [code(name), text(operation, 'summary'), ...bodies]
  })
  const sections = operations.map(({ name, operation }) => sectionOf(document, name, operation))
  const schemas = members(member(document, 'components'), 'schemas').map(([name, schema]) => {
    return [`### ${name}`, ...objectText(schema)].join('\n\n')
  })
  const body = [
    table(['request', 'does', 'body', 'answer'], list),
    `## Requests\n\n${sections.join('\n\n')}`,
    `## Objects\n\n${schemas.join('\n\n')}`,
  ]
  return page('Admin API', INTRO, body.join('\n\n'))
}

function sectionOf(document: unknown, name: string, operation: unknown): string {
  const parameters = parametersOf(operation)
  const problems = members(operation, 'responses').flatMap(([status, response]) =>
    status === '200' || status === '406' || status === '500'
      ? []
      : [[status, text(resolved(document, response), 'description')]],
  )
  const parts = [
    `### ${code(name)}`,
    `${text(operation, 'summary')}.`,
    ...(parameters.length === 0 ? [] : [table(['parameter', 'type', 'meaning'], parameters)]),
    ...(problems.length === 0 ? [] : [table(['status', 'meaning'], problems)]),
    ...exampleOf(name, operation),
  ]
  return parts.join('\n\n')
}

/** The request as a command, and an answer to it. For the document itself the answer is left out, because it is too long. */
function exampleOf(name: string, operation: unknown): readonly string[] {
  const [method = '', path = ''] = name.split(' ')
  const body = exampleIn(member(member(operation, 'requestBody'), 'content'), 'application/json')
  const words = [
    'curl -s --unix-socket /run/namegate/admin.sock',
    ...(method === 'GET' ? [] : ['-X', method]),
    `http://admin${path.replace('{name}', 'vm-8')}`,
    ...(body === undefined ? [] : [`\\\n  -d '${JSON.stringify(body)}'`]),
  ]
  const content = member(member(member(operation, 'responses'), '200'), 'content')
  const lines = exampleIn(content, 'application/x-ndjson')
  const answer = exampleIn(content, 'application/json')
  return [
    `\`\`\`sh\n${words.join(' ')}\n\`\`\``,
    ...(lines === undefined ? [] : [`\`\`\`json\n${JSON.stringify(lines)}\n\`\`\``]),
    ...(answer === undefined ? [] : [`\`\`\`json\n${JSON.stringify(answer, null, 2)}\n\`\`\``]),
  ]
}

function exampleIn(content: unknown, type: string): unknown {
  return member(member(content, type), 'example')
}

function parametersOf(operation: unknown): readonly (readonly string[])[] {
  const parameters = member(operation, 'parameters')
  const list: readonly unknown[] = Array.isArray(parameters) ? parameters : []
  return list.map((each) => {
    const place = text(each, 'in')
    const name = code(text(each, 'name'))
    const words = place === 'query' ? name : `${name} (${place})`
    return [words, typeOf(member(each, 'schema')), text(each, 'description')]
  })
}

function resolved(document: unknown, response: unknown): unknown {
  const name = text(response, '$ref').split('/').at(-1) ?? ''
  if (name === '') return response
  return member(member(member(document, 'components'), 'responses'), name)
}

function bodyOf(operation: unknown): string {
  const content = member(member(operation, 'requestBody'), 'content')
  return nameOf(member(member(content, 'application/json'), 'schema'))
}

function answerOf(operation: unknown): string {
  const content = member(member(member(operation, 'responses'), '200'), 'content')
  const line = nameOf(member(member(content, 'application/x-ndjson'), 'schema'))
  if (line !== '') return `lines of ${line}`
  return nameOf(member(member(content, 'application/json'), 'schema'))
}

/** The fields of an object, and the names of the objects whose fields it also has. */
function objectText(schema: unknown): readonly string[] {
  const all = member(schema, 'allOf')
  const parts: readonly unknown[] = Array.isArray(all) ? all : [schema]
  const fields = parts
    .flatMap((part) => fieldsOf('', part))
    .map(([field, type, about]) => [code(field), type, about])
  const names = parts.flatMap(namesIn)
  const whose = names.length === 1 ? names.join() : `one of ${names.join(', ')}`
  return [
    ...(fields.length === 0 ? [] : [table(['field', 'type', 'meaning'], fields)]),
    ...(names.length === 0
      ? []
      : [`${fields.length === 0 ? 'The' : 'Also the'} fields of ${whose}.`]),
  ]
}

/** The objects that a schema refers to, directly or in a list of alternatives. */
function namesIn(schema: unknown): readonly string[] {
  const either = member(schema, 'oneOf') ?? member(schema, 'anyOf')
  if (Array.isArray(either)) return either.flatMap(namesIn)
  const name = nameOf(schema)
  return name === '' ? [] : [name]
}

/** The type of a body as readable text: `Endpoint`, `list of Endpoint`. */
function nameOf(schema: unknown): string {
  const named = text(schema, '$ref').split('/').at(-1) ?? ''
  if (named !== '') return named
  const item = text(member(schema, 'items'), '$ref').split('/').at(-1) ?? ''
  return item === '' ? '' : `list of ${item}`
}

/** Every field, with the fields of inner objects: `addresses[].address`. */
function fieldsOf(
  prefix: string,
  given: unknown,
): readonly (readonly [field: string, type: string, about: string])[] {
  const { schema } = withoutNull(given)
  const required = member(schema, 'required')
  const needed: readonly unknown[] = Array.isArray(required) ? required : []
  return members(schema, 'properties').flatMap(([name, of]) => {
    const field = `${prefix}${name}${needed.includes(name) ? '' : '?'}`
    const items = member(of, 'items')
    const inner = [...fieldsOf(`${field}.`, of), ...fieldsOf(`${field}[].`, items)]
    const about = text(of, 'description')
    const own = [field, typeOf(of), about] as const
    return inner.length === 0 ? [own] : about === '' ? inner : [own, ...inner]
  })
}

function typeOf(given: unknown): string {
  const { schema, isNullable } = withoutNull(given)
  if (isNullable) return `${typeOf(schema)} or null`
  const named = nameOf(schema)
  if (named !== '') return named
  const values = member(schema, 'enum')
  if (Array.isArray(values)) return values.map((value) => code(String(value))).join(', ')
  const type = member(schema, 'type')
  const items = member(schema, 'items')
  if (items !== undefined) return `list of ${typeOf(items)}`
  const format = text(schema, 'format')
  const words = Array.isArray(type) ? type.join(' or ') : typeof type === 'string' ? type : 'object'
  return format === 'date-time' ? words.replace('string', 'time') : words
}

/** The schema without its null alternative, and whether it had one. */
function withoutNull(schema: unknown): { readonly schema: unknown; readonly isNullable: boolean } {
  const either = member(schema, 'anyOf')
  if (!Array.isArray(either)) return { schema, isNullable: false }
  const found: unknown = either.find((each) => member(each, 'type') !== 'null')
  return { schema: found, isNullable: true }
}
