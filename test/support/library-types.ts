// Makes src/library/config-keys.ts from the schema of the configuration. The library's types have the keys, words and texts of the
// schema, and notes for a gate in a program. `npm run reference` writes the file, and test/reference.test.ts compares it.

import { configJsonSchema } from '../../src/config/load.ts'
import { DURATION_PATTERN, SIZE_PATTERN } from '../../src/core/quantity.ts'
import { isMapping } from '../../src/documents/source-document.ts'
import { formatted } from './formatted.ts'

export const LIBRARY_TYPES = 'src/library/config-keys.ts'

const HEAD = `// The keys of the configuration file as types for programs. Made from src/config/schema.ts by \`npm run reference\`; edit the
// schema or test/support/library-types.ts instead. Every key may be left out.

import type { LimitKey } from '../core/limits.ts'

/** A whole number and its unit, such as \`100ms\` or \`24h\`. */
export type Duration = \`\${number}\${'ms' | 's' | 'm' | 'h' | 'd'}\`

/** A whole number and its unit, such as \`256MiB\`. */
export type Size = \`\${number}\${'KiB' | 'MiB' | 'GiB'}\`
`

/** Groups with a type of their own, by path. All other groups are written inside these. */
const NAMED: ReadonlyMap<string, string> = new Map([
  ['audit.endpoints[]', 'LabelSelectorKeys'],
  ['listeners[]', 'ListenerKeys'],
  ['intercept', 'InterceptKeys'],
  ['upstreams', 'UpstreamsKeys'],
  ['policies', 'PoliciesKeys'],
  ['dns', 'DnsKeys'],
  ['datapath', 'DatapathKeys'],
])

/** The texts that differ for a gate inside a program. An entry replaces the text of the schema. */
const NOTES: ReadonlyMap<string, string> = new Map([
  ['listeners', 'Left out: 127.0.0.1 at a free port.'],
  ['listeners[].port', '0 takes a free one, which `Gate.addresses` has (default 5300).'],
  ['policies.paths', 'Files or directories with policies (default: none).'],
  ['endpoints.files', 'Endpoints files (default: none).'],
  [
    'endpoints.identity-labels',
    'Labels that make identities, and that policies see; keys without `!` are the only ones kept (default: those of Cilium).',
  ],
  [
    'datapath.kind',
    '`memory` enforces nothing and needs no root: it shows what would be (default memory).',
  ],
  ['state', 'What outlives the process. Left out: nothing is kept on disk.'],
  ['flows', 'Decisions and drops kept on disk; only with `state`.'],
  ['admin', 'The admin API. Left out: no socket for `namegate get`, `status` and the like.'],
  [
    'metrics',
    'Metrics and health. Left out: none. Port 0 takes a free one, which `Gate.metricsPort` has.',
  ],
  ['limits', 'Bounds; times as durations.'],
  ['log', 'What `GateOptions.log` is called with.'],
])

/** The text of the file. */
export async function libraryTypes(): Promise<string> {
  const schema = configJsonSchema()
  const types = [...NAMED].map(([path, name]) => interfaceOf(name, path, schemaAt(schema, path)))
  const whole = interfaceOf(
    'GateConfig',
    '',
    schema,
    'The configuration, with the keys of the file.',
  )
  return await formatted(LIBRARY_TYPES, [HEAD, ...types, whole].join('\n'))
}

function interfaceOf(name: string, path: string, schema: unknown, doc?: string): string {
  return `${comment(doc ?? docOf(path, schema))}export interface ${name} ${bodyOf(path, schema)}\n`
}

function bodyOf(path: string, schema: unknown): string {
  const required = valueOf(schema, 'required')
  const lines = propertiesOf(schema).map(([key, of]) => {
    const at = path === '' ? key : `${path}.${key}`
    const isRequired = Array.isArray(required) && required.includes(key)
    const type = isRequired ? typeOf(at, of) : `${typeOf(at, of)} | undefined`
    return `${comment(docOf(at, of))}'${key}'${isRequired ? '' : '?'}: ${type}`
  })
  return `{\n${lines.join('\n')}\n}`
}

function typeOf(path: string, schema: unknown): string {
  if (path === 'limits') return '{ [Key in LimitKey]?: number | Duration | undefined }'
  const name = NAMED.get(path)
  if (name !== undefined) return name
  const words = valueOf(schema, 'enum')
  if (Array.isArray(words)) return words.map((word) => `'${String(word)}'`).join(' | ')
  switch (valueOf(schema, 'type')) {
    case 'boolean':
      return 'boolean'
    case 'integer':
      return 'number'
    case 'string':
      return textType(valueOf(schema, 'pattern'))
    case 'array':
      return `readonly (${typeOf(`${path}[]`, valueOf(schema, 'items'))})[]`
    default:
      return propertiesOf(schema).length > 0
        ? bodyOf(path, schema)
        : 'Readonly<Record<string, string>>'
  }
}

function textType(pattern: unknown): string {
  if (pattern === DURATION_PATTERN.source) return 'Duration'
  return pattern === SIZE_PATTERN.source ? 'Size' : 'string'
}

/** The note of the path. Without a note: the schema's text with its default and without its unit. */
function docOf(path: string, schema: unknown): string {
  const note = NOTES.get(path)
  if (note !== undefined) return note
  const description = valueOf(schema, 'description')
  const text = typeof description === 'string' ? description : ''
  const [, doc = text, standard] = /^(.*?) \((?:[^()]*; )?(default:? .*)\)\.$/s.exec(text) ?? []
  const whole = standard === undefined ? doc : `${doc} (${standard}).`
  return whole.charAt(0).toUpperCase() + whole.slice(1)
}

function comment(doc: string): string {
  return doc === '' ? '' : `/** ${doc.replaceAll('*/', '*\\/')} */\n`
}

function schemaAt(schema: unknown, path: string): unknown {
  return path.split('.').reduce((at, step) => {
    const inside = valueOf(valueOf(at, 'properties'), step.replace('[]', ''))
    return step.endsWith('[]') ? valueOf(inside, 'items') : inside
  }, schema)
}

function propertiesOf(schema: unknown): readonly (readonly [key: string, schema: unknown])[] {
  const properties = valueOf(schema, 'properties')
  return isMapping(properties) ? Object.entries(properties) : []
}

function valueOf(of: unknown, key: string): unknown {
  return isMapping(of) ? of[key] : undefined
}
