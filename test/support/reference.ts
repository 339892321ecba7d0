// Makes the pages of docs/reference/ and docs/api.md from the program: the schema of the configuration, the table of metrics, the help
// of the commands, and the OpenAPI document. programs/write-reference.ts writes them, and test/reference.test.ts compares them.

import { COMMANDS } from '../../src/cli/commands.ts'
import { helpOf } from '../../src/cli/reference.ts'
import { configJsonSchema } from '../../src/config/load.ts'
import { METRICS } from '../../src/daemon/metrics.ts'
import { labelsOf, metricType, type Metric } from '../../src/telemetry/metric-table.ts'
import { PREFIX } from '../../src/telemetry/metrics.ts'
import { PROCESS_METRICS } from '../../src/telemetry/process-metrics.ts'
import { API_PAGE, apiPage } from './api-page.ts'
import { API_TYPES, apiTypes } from './api-types.ts'
import { LIBRARY_TYPES, libraryTypes } from './library-types.ts'
import { code, member, members, page, table, text } from './markdown.ts'

/** The text of every page by its path, and of the library's types. */
export async function makeReference(): Promise<ReadonlyMap<string, string>> {
  return new Map([
    ['docs/reference/configuration.md', configurationPage()],
    ['docs/reference/metrics.md', metricsPage()],
    ['docs/reference/commands.md', commandsPage()],
    [API_PAGE, apiPage()],
    [LIBRARY_TYPES, await libraryTypes()],
    [API_TYPES, await apiTypes()],
  ])
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

/** A row for the key itself unless it is a group, and one for each key in it. */
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

/** The text without the default, which has its own column. */
function meaningOf(description: string): string {
  return sentence(
    description.replace(/[;(] ?default .*\)\.$/s, (tail) => (tail.startsWith(';') ? ')' : '')),
  )
}

function sentence(words: string): string {
  return words.trim().replace(/\.$/, '')
}

function metricsPage(): string {
  const row = <Sources>(name: string, metric: Metric<Sources>): readonly string[] => [
    code(name),
    metricType(name, metric),
    labelsOf(metric).map(code).join(', '),
    metric.help,
  ]
  const rows = [
    ...Object.entries(METRICS).map(([name, metric]) => row(PREFIX + name, metric)),
    ...Object.entries(PROCESS_METRICS).map(([name, metric]) => row(name, metric)),
  ].toSorted(([a = ''], [b = '']) => (a < b ? -1 : 1))
  const intro =
    'Every metric of `/metrics`. Some metrics appear only if their part runs, such as those of the state folder. The values of labels come\n' +
    'from fixed lists, from the configuration or from the endpoints, never from a client. `deploy/prometheus/` has alerts,\n' +
    'which [the runbook](../runbook.md) explains, and `deploy/grafana/` has dashboards.'
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
