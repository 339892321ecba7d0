// Compares responses of the admin API with its OpenAPI document: the status and media type must be listed, and the body must have the
// members of the schema and no others.

import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import { openApi } from '../../src/admin/document/openapi.ts'
import { isMapping } from '../../src/documents/source-document.ts'
import type { HttpAnswer } from './nodes/admin.ts'

export interface Operation {
  readonly method: string
  /** As the document writes it: `/v1/resources/{name}`. */
  readonly path: string
  readonly hasBody: boolean
  readonly statuses: readonly string[]
}

/** Every error of a path or method that the document does not list. */
const PROBLEM = '#/components/schemas/Problem'

export class ApiDocument {
  readonly #document: unknown
  readonly #ajv: Ajv2020
  /** `GET /v1/status 200` for each correct response. */
  readonly seen = new Set<string>()

  constructor() {
    this.#document = closed(JSON.parse(JSON.stringify(openApi('1.2.3'))))
    this.#ajv = new Ajv2020({ strict: false, validateSchema: false, allErrors: true })
    this.#ajv.addFormat('date-time', /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    this.#ajv.addSchema({ ...objectOf(this.#document), $id: 'api' })
  }

  get operations(): readonly Operation[] {
    const paths = entriesOf(member(this.#document, 'paths'))
    return paths.flatMap(([path, methods]) =>
      entriesOf(methods).map(([method, operation]) => ({
        method: method.toUpperCase(),
        path,
        hasBody: member(operation, 'requestBody') !== undefined,
        statuses: entriesOf(member(operation, 'responses')).map(([status]) => status),
      })),
    )
  }

  /** Returns what is wrong with a response. Empty if nothing is wrong. */
  faults(method: string, url: string, answer: HttpAnswer): readonly string[] {
    const path = this.#pathOf(url.split('?')[0] ?? '')
    const operation = member(member(member(this.#document, 'paths'), path), method.toLowerCase())
    const { status, type } = answer
    const where = `${method} ${path} ${status}`
    const listed = this.#resolved(member(member(operation, 'responses'), String(status)))
    if (operation !== undefined && listed === undefined) return [`${where}: not listed`]
    const content = member(listed, 'content')
    const [media = ''] = type.split(';')
    const pointer = operation === undefined ? PROBLEM : refOf(content, media)
    const isList = member(member(member(content, media), 'schema'), 'type') === 'array'
    if (content === undefined && listed !== undefined) return this.#empty(where, answer)
    if (pointer === undefined) return [`${where}: media type ${media} is not listed`]
    const bodies = bodiesOf(answer, media, isList)
    const faults = bodies.flatMap((body) => this.#bodyFaults(pointer, body))
    if (faults.length === 0) this.seen.add(where)
    return faults.map((fault) => `${where}: ${fault}`)
  }

  #empty(where: string, { text }: HttpAnswer): readonly string[] {
    if (text !== '') return [`${where}: expected no body`]
    this.seen.add(where)
    return []
  }

  #bodyFaults(pointer: string, body: unknown): readonly string[] {
    const validate: ValidateFunction | undefined = this.#ajv.getSchema(`api${pointer}`)
    if (validate === undefined) return [`no schema ${pointer}`]
    if (validate(body) === true) return []
    const faults = validate.errors?.map((error) => {
      const more = JSON.stringify(error.params)
      return `${error.instancePath} ${error.message ?? ''} ${more} (${error.schemaPath})`
    })
    return [`${JSON.stringify(body)}: ${faults?.join('; ') ?? ''}`]
  }

  #pathOf(pathname: string): string {
    return pathname.startsWith('/v1/resources/') ? '/v1/resources/{name}' : pathname
  }

  #resolved(response: unknown): unknown {
    const name = refName(response)
    if (name === undefined) return response
    return member(member(member(this.#document, 'components'), 'responses'), name)
  }
}

/** The pointer to the schema of an object, of the objects of a list, or of one line. */
function refOf(content: unknown, media: string): string | undefined {
  const schema = member(member(content, media), 'schema')
  const found = member(schema, '$ref') ?? member(member(schema, 'items'), '$ref')
  if (typeof found === 'string') return found
  // The document describes itself as a plain object.
  return schema === undefined ? undefined : '#/components/schemas/Anything'
}

function bodiesOf({ text }: HttpAnswer, media: string, isList: boolean): readonly unknown[] {
  if (media === 'application/x-ndjson') {
    return text
      .split('\n')
      .filter((line) => line !== '')
      .map((line): unknown => JSON.parse(line))
  }
  const body: unknown = JSON.parse(text)
  if (!isList) return [body]
  return Array.isArray(body) ? body : ['found no list']
}

/** The document with schemas that allow no unlisted members. The parts of an `allOf` stay open, and the whole schema is closed. */
function closed(document: unknown): unknown {
  const components = member(document, 'components')
  const open = member(components, 'schemas')
  const parts = new Set(entriesOf(open).flatMap(([, schema]) => partsOf(open, schema)))
  const all: Record<string, unknown> = { Anything: {} }
  for (const [name, schema] of entriesOf(open)) all[name] = close(schema, parts.has(name))
  return { ...objectOf(document), components: { ...objectOf(components), schemas: all } }
}

/** The names of the schemas in the `allOf` of a schema. */
function partsOf(schemas: unknown, schema: unknown, isPart = false): readonly string[] {
  const name = refName(schema)
  if (isPart && name !== undefined) return [name, ...partsOf(schemas, member(schemas, name), true)]
  return ['allOf', 'oneOf', 'anyOf'].flatMap((key) => {
    const parts = member(schema, key)
    if (!Array.isArray(parts)) return []
    return parts.flatMap((part) => partsOf(schemas, part, isPart || key === 'allOf'))
  })
}

function close(value: unknown, isPart = false): unknown {
  if (Array.isArray(value)) return value.map((each) => close(each, isPart))
  if (!isMapping(value)) return value
  const isWhole = 'allOf' in value
  const inner = Object.fromEntries(
    Object.entries(value).map(([key, of]) => [key, close(of, isWhole && key === 'allOf')]),
  )
  if (isWhole) return { ...inner, unevaluatedProperties: false }
  const isOpen = inner['type'] === 'object' && 'properties' in inner && !isPart
  return isOpen ? { ...inner, additionalProperties: false } : inner
}

function refName(schema: unknown): string | undefined {
  const pointer = member(schema, '$ref')
  return typeof pointer === 'string' ? pointer.split('/').at(-1) : undefined
}

function objectOf(value: unknown): Readonly<Record<string, unknown>> {
  return isMapping(value) ? value : {}
}

function member(value: unknown, key: string): unknown {
  return objectOf(value)[key]
}

function entriesOf(value: unknown): readonly (readonly [string, unknown])[] {
  return Object.entries(objectOf(value))
}
