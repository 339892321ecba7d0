// The alerts of deploy/prometheus: promtool accepts them and their tests, each uses existing metrics, and the runbook has a section for
// each.

import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { test } from 'node:test'
import { parse } from 'yaml'
import { metricNames } from './support/metric-names.ts'
import { run } from './support/labs/lab-process.ts'

const PROMTOOL = resolve('build/tools/promtool')
const LEFT_OUT = existsSync(PROMTOOL)
  ? false
  : 'build/tools/promtool is not there (npm test gets it)'

interface Rule {
  readonly alert: string
  readonly expr: string
  readonly labels?: { readonly severity?: string }
  readonly annotations?: Readonly<Record<string, string>>
}

function readRules(): readonly Rule[] {
  const file = parse(readFileSync('deploy/prometheus/alerts.yml', 'utf8')) as {
    readonly groups: readonly { readonly rules: readonly Rule[] }[]
  }
  return file.groups.flatMap(({ rules }) => rules)
}

const rules = readRules()

test(
  'deploy/prometheus passes promtool check rules and test rules',
  { skip: LEFT_OUT },
  async () => {
    const rows: readonly (readonly [args: readonly string[], expected: RegExp])[] = [
      [['check', 'rules', 'deploy/prometheus/alerts.yml'], /SUCCESS: \d+ rules found/],
      [['test', 'rules', 'deploy/prometheus/alerts.test.yml'], /SUCCESS/],
    ]
    for (const [args, expected] of rows) {
      const { code, stdout, stderr } = await run(PROMTOOL, args)
      assert.equal(code, 0, `${args.join(' ')}: ${stdout}${stderr}`)
      assert.match(stdout, expected)
    }
  },
)

test('every alert has a severity, a test of its own, and a section in the runbook', () => {
  const runbook = readFileSync('docs/runbook.md', 'utf8')
  const tests = readFileSync('deploy/prometheus/alerts.test.yml', 'utf8')
  for (const { alert, labels, annotations } of rules) {
    assert.match(labels?.severity ?? '', /^(?:critical|warning)$/, alert)
    assert.ok(annotations?.['summary'] !== undefined, `${alert} has a summary`)
    assert.ok(annotations['description'] !== undefined, `${alert} has a description`)
    assert.equal(annotations['runbook_url'], `docs/runbook.md#${alert.toLowerCase()}`)
    assert.ok(tests.includes(`- name: '${alert}: `), `${alert} has a test`)
    const [section = ''] = runbook.split(`## ${alert}\n`)[1]?.split('\n## ') ?? []
    assert.ok(
      section.includes(`\nSeverity: ${labels?.severity ?? ''}.\n`),
      `${alert} in the runbook`,
    )
    assert.match(section, /\nLook:\n[^]*```sh\n[^]*\nDo: /, `${alert}: how to look, what to do`)
  }
  const sections = [...runbook.matchAll(/^## (\w+)$/gm)].map(([, name]) => name)
  assert.deepEqual(
    sections,
    rules.map(({ alert }) => alert),
    'no section without an alert',
  )
})

test('every alert uses metrics that the daemon has', () => {
  const known = metricNames()
  for (const { alert, expr } of rules) {
    const names = [...expr.matchAll(/\b(?:up|namegate_\w+|nodejs_\w+|process_\w+)\b/g)]
    assert.ok(names.length > 0, `${alert} uses a metric`)
    for (const [name] of names) assert.ok(name === 'up' || known.has(name), `${alert}: ${name}`)
  }
})
