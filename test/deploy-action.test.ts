// action.yml and deploy/compose/: the form of a composite action, no input inside a script, and a composition whose configuration namegate
// accepts.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { after, test } from 'node:test'
import { parse } from 'yaml'
import { run } from './support/labs/lab-process.ts'

const folder = mkdtempSync(join(tmpdir(), 'namegate-action-'))
after(() => rmSync(folder, { recursive: true }))

interface Step {
  readonly id?: string
  readonly run: string
  readonly env?: Readonly<Record<string, string>>
}

interface Action {
  readonly inputs: Readonly<Record<string, Readonly<Record<string, unknown>>>>
  readonly outputs: Readonly<Record<string, { readonly value: string }>>
  readonly runs: { readonly using: string; readonly steps: readonly Step[] }
}

const action = parse(readFileSync('action.yml', 'utf8')) as Action
/** The keys of GitHub's schema for actions. The first group is required. */
const KEYS = {
  action: [
    ['name', 'description', 'runs'],
    ['author', 'inputs', 'outputs', 'branding'],
  ],
  input: [['description'], ['required', 'default', 'deprecationMessage']],
  output: [['description', 'value'], []],
  runs: [['using', 'steps'], []],
  step: [
    ['run', 'shell'],
    ['if', 'name', 'id', 'env', 'continue-on-error', 'working-directory'],
  ],
} as const

function mustHaveKeys(what: keyof typeof KEYS, value: object): void {
  const [required, more] = KEYS[what]
  const keys = Object.keys(value)
  assert.deepEqual(
    required.filter((key) => !keys.includes(key)),
    [],
    `${what} lacks keys`,
  )
  const known: readonly string[] = [...required, ...more]
  assert.deepEqual(
    keys.filter((key) => !known.includes(key)),
    [],
    `${what} has unknown keys`,
  )
}

test('action.yml has the form of a composite action', () => {
  mustHaveKeys('action', action)
  mustHaveKeys('runs', action.runs)
  assert.equal(action.runs.using, 'composite')
  for (const each of Object.values(action.inputs)) mustHaveKeys('input', each)
  for (const each of Object.values(action.outputs)) mustHaveKeys('output', each)
  for (const each of action.runs.steps) mustHaveKeys('step', each)
})

test('action.yml refers only to inputs and outputs that exist, and uses each input', () => {
  const text = readFileSync('action.yml', 'utf8')
  const inputs = [...text.matchAll(/\$\{\{ inputs\.([\w-]+) \}\}/g)].map(([, name = '']) => name)
  assert.deepEqual([...new Set(inputs)].sort(), Object.keys(action.inputs).sort())
  const ids = new Set(action.runs.steps.map(({ id }) => id))
  for (const [, id] of text.matchAll(/steps\.([\w-]+)\.outputs/g)) assert.ok(ids.has(id), id)
})

test('action.yml passes inputs in variables only, so that no input becomes part of a script', () => {
  for (const { run: script } of action.runs.steps) assert.doesNotMatch(script, /\$\{\{/)
})

test('action.yml runs scripts that exist and that bash can read', () => {
  for (const { run: script } of action.runs.steps) {
    const [, file = ''] = /\$GITHUB_ACTION_PATH\/(\S+?)"/.exec(script) ?? []
    assert.ok(existsSync(file), script)
    if (file.endsWith('.sh')) execFileSync('bash', ['-n', file])
  }
})

test('the summary removes the characters of Markdown from names', () => {
  const report = {
    audit: false,
    names: [{ name: 'a`|<b>.example', asked: 1, verdict: 'denied', allow: '--allow a`b' }],
    refused: [],
  }
  const [reportFile, policyFile] = [join(folder, 'report.json'), join(folder, 'policy.yaml')]
  writeFileSync(reportFile, JSON.stringify(report))
  writeFileSync(policyFile, '# ````\n')
  const args = ['deploy/action/summary.mjs', reportFile, policyFile]
  const text = execFileSync(process.execPath, args, { encoding: 'utf8' })
  assert.match(text, /^\| `a\?\?\?b\?\.example` \| 1 \| `--allow a\?b` \|$/m)
  assert.equal(text.split('````').length, 3)
})

interface Compose {
  readonly services: Readonly<
    Record<
      'namegate' | 'app',
      {
        readonly network_mode: string
        readonly cap_add?: readonly string[]
        readonly cap_drop: readonly string[]
        readonly command?: readonly string[]
        readonly configs?: readonly { readonly source: string; readonly target: string }[]
        readonly depends_on?: unknown
      }
    >
  >
  readonly configs: Readonly<Record<string, { readonly content: string }>>
}

test('deploy/compose/compose.yaml gives the application the network of namegate, and no rights', () => {
  const { services, configs } = parse(
    readFileSync('deploy/compose/compose.yaml', 'utf8'),
  ) as Compose
  const { namegate, app } = services
  assert.equal(app.network_mode, 'service:namegate')
  assert.deepEqual(app.depends_on, { namegate: { condition: 'service_healthy', restart: true } })
  assert.deepEqual([app.cap_drop, app.cap_add], [['ALL'], undefined])
  assert.deepEqual([namegate.cap_drop, namegate.cap_add], [['ALL'], ['NET_ADMIN']])
  assert.deepEqual(
    namegate.configs?.map(({ source, target }) => [source, target]),
    Object.keys(configs).map((name) => [name, `/etc/namegate/${name}`]),
  )
})

test('deploy/compose/compose.yaml holds a configuration that namegate accepts', async () => {
  const { configs } = parse(readFileSync('deploy/compose/compose.yaml', 'utf8')) as Compose
  for (const [name, { content }] of Object.entries(configs))
    writeFileSync(join(folder, name), content.replaceAll('/etc/namegate/', `${folder}/`))
  const check = ['config', 'check', join(folder, 'namegate.yaml')]
  const { code, stdout, stderr } = await run(resolve('bin/namegate'), check)
  assert.equal(code, 0, `${stdout}${stderr}`)
  const policy = await run(resolve('bin/namegate'), ['policy', 'check', join(folder, 'app.allow')])
  assert.equal(policy.code, 0, `${policy.stdout}${policy.stderr}`)
})
