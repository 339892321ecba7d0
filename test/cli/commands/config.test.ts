// `namegate config check` reads the files that the configuration names, like a daemon that starts.

import assert from 'node:assert/strict'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, beforeEach, test } from 'node:test'
import { namegate, runCommand, type Ran } from '../../support/nodes/command.ts'
import { mkFolder } from '../../support/nodes/daemon-files.ts'

const folder = mkFolder()
const config = join(folder, 'namegate.yaml')
after(() => rmSync(folder, { recursive: true, force: true }))

const GOOD = {
  'policies/web.allow': 'a.example\n',
  'endpoints.yaml': 'endpoints: []\n',
  'resources.yaml': 'resources: []\n',
} as const

beforeEach(() => {
  mkdirSync(join(folder, 'policies'), { recursive: true })
  const names = 'policies: { paths: [policies] }\nendpoints: { files: [endpoints.yaml] }\n'
  writeFileSync(config, `${names}resources: { files: [resources.yaml] }\n`)
  for (const [name, text] of Object.entries(GOOD)) writeFileSync(join(folder, name), text)
})

async function check(): Promise<Ran> {
  return await runCommand(namegate('config'), 'check', config)
}

const ROWS: readonly (readonly [
  reason: string,
  file: keyof typeof GOOD,
  text: string,
  said: RegExp,
])[] = [
  [
    'an endpoint without an address',
    'endpoints.yaml',
    'endpoints:\n  - name: shop\n',
    /endpoints\.yaml:2:\d+: endpoints\[0\].*found no address/,
  ],
  [
    'items after an empty list',
    'endpoints.yaml',
    'endpoints: []\n- name: shop\n',
    /endpoints\.yaml:1:12: found items after 'endpoints: \[\]'.*remove the \[\]/,
  ],
  [
    'indented items after an empty list of resources',
    'resources.yaml',
    '# Before.\nresources: [ ]\n\n# - name: a\n  - name: b\n',
    /resources\.yaml:2:12: found items after 'resources: \[\]'.*remove the \[\]/,
  ],
  [
    'a name with an empty DNS label',
    'policies/web.allow',
    'a.example\nbad..name\n',
    /web\.allow:2:5: .*bad\.\.name/,
  ],
]

for (const [reason, file, text, said] of ROWS) {
  test(`config check reports the fault of a file that it names: ${reason}`, async () => {
    assert.equal((await check()).code, 0)
    writeFileSync(join(folder, file), text)
    const { code, out } = await check()
    assert.match(out, said)
    assert.equal(code, 2)
  })
}

test('config check reports a missing path, as a starting daemon does', async () => {
  rmSync(join(folder, 'endpoints.yaml'))
  rmSync(join(folder, 'policies'), { recursive: true })
  const { code, out, err } = await check()
  const [policies, endpoints, ...more] = out.trimEnd().split('\n')
  assert.match(
    policies ?? '',
    /namegate\.yaml:1:21: found no file or folder .*policies, expected one/,
  )
  assert.match(endpoints ?? '', /namegate\.yaml:2:22: found no file or folder .*endpoints\.yaml,/)
  assert.deepEqual([more, err, code], [[], '', 2])
})
