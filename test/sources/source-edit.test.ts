// Policies and endpoints that a program sets at run time, beside those of files.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parse } from 'yaml'
import { policyRows } from '../../src/admin/views/policies.ts'
import { formatFault, InvalidInputError } from '../../src/core/errors.ts'
import { readEdit, type SourceEdit } from '../../src/sources/source-edit.ts'
import { endpointsText, policyText } from '../support/nodes/daemon-files.ts'
import { withLab, type DaemonLab } from '../support/labs/daemon-lab.ts'

const FILES = {
  'p/a.yaml': policyText('a', ['a.example'], { app: 'me' }),
  'endpoints.yaml': endpointsText({ me: '127.0.0.1' }),
}
const OPTIONS = { files: FILES, policies: ['p'], config: 'unknown-clients: { wait: 0s }' }

const other = { name: 'other', addresses: ['127.0.0.2'], labels: { app: 'other' } }

function policies(given: Readonly<Record<string, unknown>>): SourceEdit {
  return { policies: new Map(Object.entries(given)) }
}

function endpoints(given: Readonly<Record<string, unknown>>): SourceEdit {
  return { endpoints: new Map(Object.entries(given)) }
}

function faultsOf(edit: () => void): readonly string[] {
  try {
    edit()
    return []
  } catch (error) {
    assert.ok(error instanceof InvalidInputError)
    return error.faults.map(formatFault)
  }
}

async function told(lab: DaemonLab, ...asked: readonly string[]): Promise<readonly string[]> {
  const verdicts: string[] = []
  for (const each of asked) {
    const [name = '', from] = each.split('@')
    verdicts.push(await lab.verdict(name, from))
  }
  return verdicts
}

test('ConfigSources.edit adds, changes and removes policies and endpoints beside files', async () => {
  await withLab(OPTIONS, async (lab) => {
    const { sources } = lab.daemon
    const ask = async () =>
      await told(lab, 'a.example@127.0.0.1', 'a.example@127.0.0.2', 'b.example@127.0.0.2')
    assert.deepEqual(await ask(), ['NOERROR', 'REFUSED 18', 'REFUSED 18'])
    sources.edit({
      ...policies({ b: policyText('b', ['b.example'], { app: 'other' }) }),
      ...endpoints({ other }),
    })
    assert.deepEqual(await ask(), ['NOERROR', 'REFUSED 15', 'NOERROR'], 'at once')
    sources.edit(policies({ b: parse(policyText('b', ['a.example'], { app: 'other' })) }))
    await lab.pass(100)
    assert.deepEqual(await ask(), ['NOERROR', 'NOERROR', 'REFUSED 15'], 'changed, as an object')
    lab.write('p/a.yaml', policyText('a', ['b.example'], { app: 'me' }))
    await lab.pass(200)
    assert.deepEqual(await ask(), ['REFUSED 15', 'NOERROR', 'REFUSED 15'], 'a file changed')
    sources.edit({ ...policies({ b: undefined }), ...endpoints({ other: undefined }) })
    await lab.pass(100)
    assert.deepEqual(await ask(), ['REFUSED 15', 'REFUSED 18', 'REFUSED 18'], 'removed')
    assert.deepEqual(
      [...policyRows(lab.admin)].map(({ name }) => name),
      ['a'],
    )
  })
})

test('ConfigSources.edit changes nothing if any part is wrong', async () => {
  await withLab(OPTIONS, async (lab) => {
    const { sources, policies: control } = lab.daemon
    const { revision } = control
    const again: unknown = parse(policyText('a', ['b.example'], { app: 'me' }))
    const rows: readonly (readonly [edit: SourceEdit, fault: string, reason: string])[] = [
      [
        { ...endpoints({ other }), ...policies({ x: { kind: 'Pod' } }) },
        'policy x: found no apiVersion, expected cilium.io/v2',
        'no policy: the endpoint of the same edit is not added either',
      ],
      [
        policies({ x: 'a: [' }),
        'policy x:1:5: found no ] at the end of a list that begins with [, or a line of it without indentation',
        'a text has lines',
      ],
      [
        policies({ x: [again, again] }),
        'policy x: metadata.name: found the CiliumNetworkPolicy default/a again, first at policy x',
        'twice in one list',
      ],
      [
        policies({ x: again }),
        `policy x: found the CiliumNetworkPolicy default/a again, first at ${lab.path('p/a.yaml')}:5`,
        'a file has it',
      ],
      [
        endpoints({ other: { ...other, addresses: ['127.0.0.1'] } }),
        `endpoint other: other: found 127.0.0.1/32, which overlaps me's 127.0.0.1/32, first at ${lab.path('endpoints.yaml')}:2`,
        "a file's address",
      ],
      [
        endpoints({ other: { ...other, adresses: [] } }),
        'endpoint other: unknown field adresses; did you mean "addresses"?',
        'an unknown field',
      ],
      [endpoints({ other: 1 }), 'endpoint other: found 1, expected a mapping', 'no object'],
    ]
    for (const [edit, fault, reason] of rows) {
      const [found = '', ...more] = faultsOf(() => sources.edit(edit))
      assert.deepEqual([found, more], [fault, []], reason)
      assert.deepEqual(
        await told(lab, 'a.example@127.0.0.1', 'b.example@127.0.0.1', 'a.example@127.0.0.2'),
        ['NOERROR', 'REFUSED 15', 'REFUSED 18'],
        reason,
      )
      assert.equal(control.revision, revision, reason)
    }
  })
})

test('ConfigSources.edit lets two endpoints swap places in one edit, not in two', async () => {
  await withLab(OPTIONS, async (lab) => {
    const { sources } = lab.daemon
    const at = (name: string, address: string) => ({ ...other, name, addresses: [address] })
    sources.edit(endpoints({ x: at('x', '127.0.0.2'), y: at('y', '127.0.0.3') }))
    assert.equal(faultsOf(() => sources.edit(endpoints({ x: at('x', '127.0.0.3') }))).length, 1)
    sources.edit(endpoints({ x: at('x', '127.0.0.3'), y: at('y', '127.0.0.2') }))
    const { registry } = lab.daemon.endpoints
    assert.deepEqual(
      registry.byName('x')?.addresses[0]?.octets.slice(0, 4),
      Uint8Array.of(127, 0, 0, 3),
    )
    assert.equal(registry.size, 3)
  })
})

test('ConfigSources.edit without a change keeps the revision', async () => {
  await withLab(OPTIONS, async (lab) => {
    const { sources, policies: control, core } = lab.daemon
    const edit = {
      ...policies({ b: policyText('b', ['b.example'], { app: 'other' }) }),
      ...endpoints({ other }),
    }
    sources.edit(edit)
    await lab.pass(100)
    const before = [control.revision, core.committer.revision]
    sources.edit(structuredClone(edit))
    await lab.pass(100)
    assert.deepEqual([control.revision, core.committer.revision], before)
  })
})

test('ConfigSources.edit refuses an edit over a bound, and what was in force stays', async () => {
  const config = `${OPTIONS.config}\nlimits: { endpoints: 2 }`
  await withLab({ ...OPTIONS, config }, async (lab) => {
    const { sources } = lab.daemon
    sources.edit(endpoints({ other }))
    const third = { name: 'third', addresses: ['127.0.0.3'] }
    const [fault = ''] = faultsOf(() => sources.edit(endpoints({ third })))
    assert.match(fault, /endpoint third: .*3 .*2/)
    assert.equal(lab.daemon.endpoints.registry.size, 2)
    sources.edit(endpoints({ other: undefined, third }))
    assert.equal(lab.daemon.endpoints.registry.byName('third')?.name, 'third')
  })
})

test('readEdit reports every fault of an edit at once', () => {
  const { faults } = readEdit({ ...policies({ p: 7 }), ...endpoints({ e: {} }) })
  assert.deepEqual(faults.map(formatFault), [
    'policy p: found 7, expected a policy: a mapping with apiVersion, kind, metadata and spec',
    'endpoint e: found no name, expected one',
    'endpoint e: found no address, expected at least one',
  ])
})
