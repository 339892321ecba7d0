// The pages of docs/reference/, made from what the program itself knows: the schema of the configuration, the table of metrics,
// the help of the commands, and the OpenAPI document. programs/write-reference.ts writes them, test/reference.test.ts compares them.

import { openApi } from '../../src/admin/openapi.ts'
import { COMMANDS } from '../../src/cli/commands.ts'
import { helpOf } from '../../src/cli/reference.ts'
import { configJsonSchema } from '../../src/config/load.ts'
import { METRICS } from '../../src/daemon/metrics.ts'
import { metricType, PREFIX } from '../../src/telemetry/metrics.ts'
import { ADMIN_TYPES, adminTypes } from './admin-types.ts'
import { LIBRARY_TYPES, libraryTypes } from './library-types.ts'

const MADE = '<!-- Made by `npm run reference`; edit its sources instead. -->'

/** Path -> text of every page, and of the library's types. */
export async function makeReference(): Promise<ReadonlyMap<string, string>> {
  return new Map([
    ['docs/reference/configuration.md', configurationPage()],
    ['docs/reference/metrics.md', metricsPage()],
    ['docs/reference/commands.md', commandsPage()],
    ['docs/reference/api.md', apiPage()],
    [LIBRARY_TYPES, await libraryTypes()],
    [ADMIN_TYPES, await adminTypes()],
  ])
}

function page(title: string, intro: string, body: string): string {
  return `# ${title}\n\n${MADE}\n\n${intro}\n\n${body.trim()}\n`
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.map(cell).join(' | ')} |`
  return [line(head), `|${'---|'.repeat(head.length)}`, ...rows.map(line)].join('\n')
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('\n', ' ')
}

function code(text: string): string {
  return `\`${text}\``
}

/** The member of an object of unknown shape; undefined where there is none. */
function member(of: unknown, key: string): unknown {
  return typeof of === 'object' && of !== null ? new Map(Object.entries(of)).get(key) : undefined
}

function members(of: unknown, key: string): readonly (readonly [string, unknown])[] {
  const object = member(of, key)
  return typeof object === 'object' && object !== null ? Object.entries(object) : []
}

function text(of: unknown, key: string): string {
  const value = member(of, key)
  return typeof value === 'string' ? value : ''
}

interface ConfigRow {
  readonly key: string
  readonly standard: string
  readonly meaning: string
}

function configurationPage(): string {
  const top = members(configJsonSchema(), 'properties')
  const sections = top.map(([key, schema]) => {
    const about =
      members(schema, 'properties').length > 0 ? `${sentence(text(schema, 'description'))}.` : ''
    const rows = rowsOf(key, schema).map((row) => [code(row.key), row.standard, row.meaning])
    return [
      `## ${key}`,
      ...(about === '' ? [] : [about]),
      table(['key', 'default', 'meaning'], rows),
    ].join('\n\n')
  })
  const intro =
    'Every key of the configuration file. A key with a dot stands inside its group: `dns.min-ttl` is `min-ttl` under `dns`.\n' +
    '`[]` after a key means each item of a list. Unknown keys are errors. `namegate config schema` prints the same as JSON Schema.'
  return page('Configuration', intro, sections.join('\n\n'))
}

/** A row for the key itself, unless it is a group; and one for everything in it. */
function rowsOf(key: string, schema: unknown): readonly ConfigRow[] {
  const inner = members(schema, 'properties').flatMap(([name, of]) => rowsOf(`${key}.${name}`, of))
  if (inner.length > 0) return inner
  const items = members(member(schema, 'items'), 'properties')
  const below = items.flatMap(([name, of]) => rowsOf(`${key}[].${name}`, of))
  const standard = member(schema, 'default')
  const words =
    standard === undefined
      ? ''
      : code(typeof standard === 'string' ? standard : JSON.stringify(standard))
  return [{ key, standard: words, meaning: meaningOf(text(schema, 'description')) }, ...below]
}

/** Without the default, which has a column of its own. */
function meaningOf(description: string): string {
  return sentence(
    description.replace(/[;(] ?default .*\)\.$/s, (tail) => (tail.startsWith(';') ? ')' : '')),
  )
}

function sentence(words: string): string {
  return words.trim().replace(/\.$/, '')
}

function metricsPage(): string {
  const rows = Object.entries(METRICS)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, metric]) => [
      code(PREFIX + name),
      metricType(name, metric),
      metric.label === undefined ? '' : code(metric.label),
      metric.help,
    ])
  const intro =
    'Every metric of `/metrics`. Some metrics appear only if their part runs, such as those of the state folder. The values of labels come\n' +
    'from fixed lists or from the configuration, never from a client. `deploy/prometheus/` has alerts.'
  return page('Metrics', intro, table(['metric', 'type', 'label', 'meaning'], rows))
}

function commandsPage(): string {
  const specs = COMMANDS.flatMap((spec) => [spec, ...('runRaw' in spec ? [] : (spec.verbs ?? []))])
  const parts = specs.map((spec) => {
    const about = `${spec.summary[0]?.toUpperCase()}${spec.summary.slice(1)}.`
    return `## ${spec.name}\n\n${about}\n\n\`\`\`text\n${helpOf(spec).trim()}\n\`\`\``
  })
  return page(
    'Commands',
    'The help of every command. `namegate COMMAND --help` prints the help of one command. `namegate help --man` prints a man page with all of\n' +
      'them.',
    parts.join('\n\n'),
  )
}

function apiPage(): string {
  const document = openApi('')
  const rows = members(document, 'paths').flatMap(([path, methods]) =>
    ['get', 'post', 'put', 'delete'].flatMap((method) => {
      const operation = member(methods, method)
      if (operation === undefined) return []
      const answer = member(member(member(operation, 'responses'), '200'), 'content')
      const schema = member(member(answer, 'application/json'), 'schema')
      const body = member(member(member(operation, 'requestBody'), 'content'), 'application/json')
      return [
        [
          code(`${method.toUpperCase()} ${path}`),
          text(operation, 'summary'),
          nameOf(member(body, 'schema')),
          nameOf(schema),
        ],
      ]
    }),
  )
  const schemas = members(member(document, 'components'), 'schemas').map(([name, schema]) => {
    const fields = fieldsOf('', schema).map(([field, type, about]) => [code(field), type, about])
    return `### ${name}\n\n${table(['field', 'type', 'meaning'], fields)}`
  })
  const intro =
    'The admin API is HTTP over the UNIX socket `admin.socket`. `GET /v1/openapi.json` serves the OpenAPI document from which this page is\n' +
    'made. A field with `?` can be missing.'
  return page(
    'Admin API',
    intro,
    `${table(['request', 'does', 'body', 'answer'], rows)}\n\n## Objects\n\n${schemas.join('\n\n')}`,
  )
}

/** What a body is, for people: `Endpoint`, `list of Endpoint`. */
function nameOf(schema: unknown): string {
  const named = text(schema, '$ref').split('/').at(-1) ?? ''
  if (named !== '') return named
  const item = text(member(schema, 'items'), '$ref').split('/').at(-1) ?? ''
  return item === '' ? '' : `list of ${item}`
}

/** Every field, with those of objects inside: `addresses[].address`. */
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
  const values = member(schema, 'enum')
  if (Array.isArray(values)) return values.map((value) => code(String(value))).join(', ')
  const type = member(schema, 'type')
  const items = member(schema, 'items')
  if (items !== undefined) return `list of ${typeOf(items)}`
  const format = text(schema, 'format')
  const words = Array.isArray(type) ? type.join(' or ') : typeof type === 'string' ? type : 'object'
  return format === 'date-time' ? words.replace('string', 'time') : words
}

/** The schema, and whether it is one of two whose other is null. */
function withoutNull(schema: unknown): { readonly schema: unknown; readonly isNullable: boolean } {
  const either = member(schema, 'anyOf')
  if (!Array.isArray(either)) return { schema, isNullable: false }
  const found: unknown = either.find((each) => member(each, 'type') !== 'null')
  return { schema: found, isNullable: true }
}
