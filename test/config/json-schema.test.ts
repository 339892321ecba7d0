// The JSON Schema that `namegate config schema` prints for editors. A validator accepts every configuration of this repository by this
// schema, and refuses what namegate refuses.

import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { parse, parseAllDocuments } from 'yaml'
import { configJsonSchema, parseConfig } from '../../src/config/load.ts'
import { InvalidInputError } from '../../src/core/errors.ts'

const schema = configJsonSchema()
assert.ok(typeof schema === 'object' && schema !== null)
const validate = new Ajv2020({ allErrors: true }).compile(schema)

function isMember(of: unknown, key: string): of is Record<string, unknown> {
  return typeof of === 'object' && of !== null && key in of
}

/** The configurations in a file: the file itself, or those in a ConfigMap. */
function configsIn(text: string): readonly unknown[] {
  return parseAllDocuments(text).flatMap((document): readonly unknown[] => {
    const value: unknown = document.toJS()
    if (isMember(value, 'listeners')) return [value]
    const data = isMember(value, 'data') ? value['data'] : undefined
    if (!isMember(data, 'namegate.yaml')) return []
    const config: unknown = parse(String(data['namegate.yaml']))
    return [config]
  })
}

test('configJsonSchema accepts every configuration in config, deploy and docs', () => {
  const files = ['config', 'deploy', 'docs/examples'].flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.yaml'))
      .map((name) => join(folder, name)),
  )
  const found = files.flatMap((file) =>
    configsIn(readFileSync(file, 'utf8')).map((config) => ({ file, config })),
  )
  assert.ok(found.length >= 7, `only ${found.length} configurations were found`)
  for (const { file, config } of found) {
    assert.ok(validate(config), `${file}: ${JSON.stringify(validate.errors)}`)
  }
})

const BAD: readonly (readonly [text: string, why: string])[] = [
  ['listenrs: []', 'an unknown key'],
  ['log: { levl: info }', 'an unknown key in a group'],
  ['datapath: { kind: ebpff }', 'a value that is not in the list'],
  ['listeners: [{ port: 70000 }]', 'a number above its bound'],
  ['upstreams: { servers: [] }', 'an empty list'],
  ['dns: { min-ttl: [1] }', 'a value of another type'],
  ['intercept: { on-start: "yes" }', 'a text for true'],
]

for (const [text, why] of BAD) {
  test(`configJsonSchema refuses what namegate refuses: ${why}`, () => {
    assert.ok(!validate(parse(text)), text)
    assert.throws(() => parseConfig(text, 'namegate.yaml', () => false), InvalidInputError)
  })
}

test('configJsonSchema describes every key', () => {
  const { properties } = schema as { readonly properties?: Record<string, object> }
  const keys = Object.entries(properties ?? {})
  assert.ok(keys.length > 10)
  for (const [key, each] of keys) assert.ok('description' in each, key)
})
