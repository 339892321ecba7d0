// src/library/admin-types.ts, made from the schemas of the admin API: what a gate reports, as types that need no other package.
// `npm run reference` writes the file, test/reference.test.ts compares it.

import { format, resolveConfig } from 'prettier'
import { z } from 'zod'
import { SCHEMAS } from '../../src/admin/shapes.ts'
import { isMapping } from '../../src/documents/source-document.ts'

export const ADMIN_TYPES = 'src/library/admin-types.ts'

const HEAD = `// What a gate reports of itself and of its endpoints. Made from src/admin/shapes.ts by \`npm run reference\`; edit the schemas instead.
`

const NAMES: readonly (readonly [name: string, doc: string, schema: z.ZodType])[] = [
  ['GateStatus', 'The state of a gate, as `namegate status -o json` prints it.', SCHEMAS.Status],
  ['GateEndpoint', 'An endpoint, as `namegate get endpoints -o json` prints it.', SCHEMAS.Endpoint],
]

/** The text of the file. */
export async function adminTypes(): Promise<string> {
  const types = NAMES.map(
    ([name, doc, schema]) =>
      `/** ${doc} */\nexport interface ${name} ${typeOf(z.toJSONSchema(schema))}\n`,
  )
  const options = await resolveConfig(ADMIN_TYPES)
  return await format([HEAD, ...types].join('\n'), { ...options, parser: 'typescript' })
}

function typeOf(schema: unknown): string {
  const of = isMapping(schema) ? schema : {}
  if (Array.isArray(of['enum'])) return of['enum'].map((word) => `'${String(word)}'`).join(' | ')
  if (Array.isArray(of['anyOf'])) return of['anyOf'].map(typeOf).join(' | ')
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

function bodyOf({ properties, required }: Readonly<Record<string, unknown>>): string {
  const lines = Object.entries(isMapping(properties) ? properties : {}).map(([key, of]) => {
    const text = isMapping(of) ? of['description'] : undefined
    const doc = typeof text === 'string' ? `/** ${text}. */\n` : ''
    const isRequired = Array.isArray(required) && required.includes(key)
    return `${doc}readonly '${key}'${isRequired ? '' : '?'}: ${typeOf(of)}`
  })
  return `{\n${lines.join('\n')}\n}`
}
