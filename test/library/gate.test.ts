// A gate inside this process, without files and without root.

import assert from 'node:assert/strict'
import { existsSync, rmSync } from 'node:fs'
import { test } from 'node:test'
import { createGate, UnavailableError } from '../../src/library.ts'
import { mkFolder, policyText } from '../support/nodes/daemon-files.ts'
import {
  config,
  job,
  policyObject,
  withGate,
  withUpstream,
  Asker,
  brief,
  take,
} from '../support/nodes/library-gate.ts'

test('createGate starts with policies as text and as objects, and endpoints, at a free port', async () => {
  const policies = {
    text: policyText('text', ['a.example'], { app: 'job' }),
    object: policyObject('object', 'b.example'),
    list: [policyObject('one', 'c.example'), policyObject('two', 'd.example')],
  }
  await withGate({ policies, endpoints: [job] }, async (gate, ask) => {
    assert.match(gate.addresses.join(' '), /^127\.0\.0\.1:\d+$/)
    const asked = ['a.example', 'b.example', 'c.example', 'd.example', 'e.example']
    const answers: string[] = []
    for (const name of asked) answers.push(await ask(name))
    assert.deepEqual(answers, ['NOERROR', 'NOERROR', 'NOERROR', 'NOERROR', 'REFUSED 15'])
    assert.equal(await ask('a.example', '127.0.0.9'), 'REFUSED 18', 'no known endpoint')
  })
})

test('Gate.change adds, changes and removes policies and endpoints, and resolves when they are in force', async () => {
  await withGate({ endpoints: [job] }, async (gate, ask) => {
    assert.equal(await ask('a.example'), 'NOERROR', 'no policy: default-egress is allow')
    const first = await gate.setPolicy('web', policyObject('web', 'a.example'))
    assert.equal(first.refused, 0)
    assert.equal(gate.status().datapath.revision, first.revision)
    assert.equal(gate.status().realizedRevision, gate.status().policyRevision)
    assert.deepEqual([await ask('a.example'), await ask('b.example')], ['NOERROR', 'REFUSED 15'])
    const second = await gate.setPolicy('web', policyObject('web', 'b.example'))
    assert.ok(second.revision > first.revision)
    assert.deepEqual([await ask('a.example'), await ask('b.example')], ['REFUSED 15', 'NOERROR'])
    await gate.change({
      endpoints: [{ name: 'other', addresses: ['127.0.0.2'], labels: { app: 'job' } }],
      removeEndpoints: ['job'],
    })
    assert.deepEqual(
      [await ask('b.example', '127.0.0.2'), await ask('b.example')],
      ['NOERROR', 'REFUSED 18'],
    )
    assert.deepEqual(
      gate.endpoints().map(({ name, policies }) => [name, policies]),
      [['other', ['default/web']]],
    )
    await gate.setEndpoint({ name: 'other', addresses: ['127.0.0.2'], labels: { app: 'x' } })
    assert.equal(await ask('a.example', '127.0.0.2'), 'NOERROR', 'the policy selects it no more')
    await gate.removePolicy('web')
    assert.equal(gate.status().policies, 0)
    const last = await gate.removeEndpoint('other')
    assert.deepEqual(await gate.removeEndpoint('other'), last, 'nothing to do is no change')
  })
})

test('Gate.change of ten thousand addresses at once resolves when all of them are in force', async () => {
  await withGate({}, async (gate) => {
    const endpoints = Array.from({ length: 5000 }, (_, i) => ({
      name: `job-${i}`,
      addresses: [`10.1.${i >> 8}.${i & 255}`, `fd00::${i.toString(16)}`],
    }))
    const { revision } = await gate.change({ endpoints })
    assert.equal(gate.status().endpoints.known, 5000)
    assert.equal(gate.status().datapath.revision, revision)
  })
})

test('createGate keeps several gates in one process separate', async () => {
  await withUpstream(async () => {
    const gates = await Promise.all(
      ['a.example', 'b.example', 'c.example'].map(
        async (name) =>
          new Asker(
            await createGate({
              config: config({ metrics: { port: 0 } }),
              policies: { web: policyObject('web', name) },
              endpoints: [job],
            }),
          ),
      ),
    )
    try {
      const answers: (readonly string[])[] = []
      for (const gate of gates)
        answers.push([await gate.ask('a.example'), await gate.ask('b.example')])
      assert.deepEqual(answers, [
        ['NOERROR', 'REFUSED 15'],
        ['REFUSED 15', 'NOERROR'],
        ['REFUSED 15', 'REFUSED 15'],
      ])
      const [first, second, third] = gates
      assert.equal(new Set(gates.map(({ gate }) => gate.metricsPort)).size, 3)
      await second?.stop()
      assert.equal(await first?.ask('a.example'), 'NOERROR')
      const flows = await take(third?.gate.flows({ kept: true }) ?? nothing(), 2)
      assert.deepEqual(flows.map(brief), ['denied job a.example', 'denied job b.example'])
      const text = await (await fetch(`http://127.0.0.1:${first?.gate.metricsPort}/metrics`)).text()
      assert.match(text, /namegate_build_info/)
    } finally {
      for (const gate of gates) await gate.stop()
    }
  })
})

async function* nothing(): AsyncGenerator<never> {}

test('createGate changes nothing in the process, and no file that is not named', async () => {
  const look = () => [
    process.eventNames().map((name) => [String(name), process.listenerCount(name)]),
    process.cwd(),
    process.umask(),
  ]
  const before = look()
  const folder = mkFolder()
  const here = process.cwd()
  process.chdir(folder)
  try {
    await withUpstream(async () => {
      const lines: string[] = []
      const gate = await createGate({
        config: config({ log: { format: 'json' }, metrics: { port: 0 } }),
        endpoints: [job],
        log: (line) => void lines.push(line),
      })
      await gate.setPolicy('web', policyObject('web', 'a.example'))
      await gate.stop()
      await gate.stop()
      await assert.rejects(gate.removePolicy('web'), (error) => error instanceof UnavailableError)
      assert.ok(
        lines.some((line) => line.includes('"configuration changed"')),
        lines.join(''),
      )
      assert.deepEqual(
        ['var', 'config'].filter((name) => existsSync(name)),
        [],
      )
      const named = config({ state: { directory: 'state' }, admin: { socket: 'admin.sock' } })
      const kept = await createGate({ config: named })
      assert.deepEqual([existsSync('state/lock'), existsSync('admin.sock')], [true, true])
      await assert.rejects(createGate({ config: named }), /state folder .* is in use by/)
      await kept.stop()
      await (await createGate({ config: named })).stop()
    })
  } finally {
    process.chdir(here)
    rmSync(folder, { recursive: true })
  }
  assert.deepEqual(look(), before)
})
