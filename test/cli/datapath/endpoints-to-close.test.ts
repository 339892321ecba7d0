// The endpoints that are closed at boot: those of the files and those that the last daemon recorded, by their hooks; and those that count
// if the files cannot be read.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { loadConfig } from '../../../src/config/load.ts'
import { endpointDocument } from '../../../src/restore/saved-endpoints.ts'
import { systemBootClock, systemClock } from '../../../src/core/clock.ts'
import { InvalidInputError } from '../../../src/core/errors.ts'
import { endpointId, generation } from '../../../src/core/ids.ts'
import { endpointsToClose } from '../../../src/cli/datapath/endpoints-to-close.ts'
import { openState } from '../../../src/state/state-store.ts'
import { mkEndpoint } from '../../support/nodes/node.ts'

const GOOD = `
endpoints:
  - { name: a, addresses: [10.0.0.1], labels: {}, interface: lxc1, audit: true }
  - { name: b, addresses: [10.0.0.2], labels: {}, cgroup: b.slice }
  - { name: unfenced, addresses: [10.0.0.9], labels: {} }
`

interface Machine {
  readonly files?: string
  /** Names of interfaces of endpoints that the last daemon had, with numbers from 7 on. */
  readonly interfaces?: readonly string[]
}

async function closedOn(t: TestContext, { files, interfaces = [] }: Machine) {
  const folder = mkdtempSync(join(tmpdir(), 'namegate-boot-'))
  t.after(() => rmSync(folder, { recursive: true }))
  if (files !== undefined) writeFileSync(join(folder, 'endpoints.yaml'), files)
  if (interfaces.length > 0) await writeDown(join(folder, 'state'), interfaces)
  const file = join(folder, 'namegate.yaml')
  writeFileSync(
    file,
    `
listeners: [{ address: 127.0.0.1, port: 5353, mode: explicit }]
upstreams: { servers: ['192.0.2.1:53'] }
policies: { paths: [] }
endpoints: { files: ['${folder}/endpoints.yaml'] }
state: { directory: '${folder}/state' }
`,
  )
  const { endpoints, highest, faults } = endpointsToClose(loadConfig(file))
  const texts = endpoints.map(({ name, hook, audit }) => {
    const where = hook.kind === 'interface' ? hook.name : hook.kind
    return `${name} ${where}${audit ? ' audit' : ''}`
  })
  return { texts, highest, faults }
}

async function writeDown(folder: string, interfaces: readonly string[]): Promise<void> {
  const onFault = ({ message }: { readonly message: string }): never => assert.fail(message)
  const clocks = { clock: systemClock, boot: systemBootClock }
  const { store } = openState({ folder, ...clocks, pairsMax: 8, onFault })
  for (const [i, name] of interfaces.entries()) {
    const hook = { kind: 'interface', name, side: 'ingress' } as const
    const id = endpointId(7 + i)
    const endpoint = {
      ...mkEndpoint(`was-${name}`, ['10.0.0.7']),
      id,
      generation: generation(7),
      hook,
    }
    store.document(endpointDocument(endpoint, undefined))
  }
  store.flush()
  await store.close()
}

test('endpointsToClose returns the endpoints of the files that have a hook', async (t) => {
  const found = await closedOn(t, { files: GOOD })
  assert.deepEqual(found, { texts: ['a lxc1 audit', 'b cgroup'], highest: 0, faults: [] })
})

test('endpointsToClose adds recorded endpoints, and uses the file if both have a hook', async (t) => {
  const { texts, highest, faults } = await closedOn(t, {
    files: GOOD,
    interfaces: ['lxc1', 'lxc9'],
  })
  assert.deepEqual(texts, ['a lxc1 audit', 'b cgroup', 'was-lxc9 lxc9'])
  assert.deepEqual([highest, faults], [8, []])
})

test('endpointsToClose returns recorded endpoints when a file is broken or missing', async (t) => {
  const broken = await closedOn(t, { files: 'endpoints: 7', interfaces: ['lxc1'] })
  assert.deepEqual(broken.texts, ['was-lxc1 lxc1'])
  assert.match(broken.faults.join(), /endpoints\.yaml:1:12: /)
  const missing = await closedOn(t, { interfaces: ['lxc1'] })
  assert.deepEqual(missing.texts, ['was-lxc1 lxc1'])
  assert.match(missing.faults.join(), /endpoints\.yaml/)
})

test('endpointsToClose refuses broken or missing files without recorded endpoints', async (t) => {
  await assert.rejects(closedOn(t, { files: 'endpoints: 7' }), InvalidInputError)
  await assert.rejects(closedOn(t, {}), InvalidInputError)
})
