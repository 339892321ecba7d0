// Several files change together or against each other. No file takes over policies or endpoints of another, and a configuration over a
// bound is refused completely.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { policyRows } from '../../src/admin/views/policies.ts'
import { PAST_BOUND } from '../../src/sources/source-bounds.ts'
import { statusView } from '../../src/admin/views/status.ts'
import { endpointsText, policyText } from '../support/nodes/daemon-files.ts'
import { withLab, type DaemonLab } from '../support/labs/daemon-lab.ts'

const SETTLED = 200
const ME = endpointsText({ me: '127.0.0.1' })
/** Unknown clients are refused at once, because no time passes while a test asks. */
const AT_ONCE = 'unknown-clients: { wait: 0s }'
const TWO = endpointsText({ me: '127.0.0.1', other: '127.0.0.2' })

/** The answers about names, asked from 127.0.0.1 or from the address after `@`. */
async function told(lab: DaemonLab, ...names: readonly string[]): Promise<readonly string[]> {
  const verdicts: string[] = []
  for (const name of names) {
    const [asked = '', from] = name.split('@')
    verdicts.push(await lab.verdict(asked, from))
  }
  return verdicts
}

function states(lab: DaemonLab): Record<string, string> {
  const rows = [...policyRows(lab.admin)].map(({ file, state }) => [file, state] as const)
  return Object.fromEntries(rows.map(([file, state]) => [file.slice(lab.folder.length + 1), state]))
}

test('Daemon follows a policy that moves to another file, without a gap', async () => {
  const files = { 'endpoints.yaml': ME, 'p/a.yaml': policyText('web', ['a.example']) }
  await withLab({ files, policies: ['p'] }, async (lab) => {
    lab.rename('p/a.yaml', 'p/b.yaml')
    for (let i = 0; i < 30; i++) {
      await lab.pass(100)
      assert.deepEqual(await told(lab, 'a.example', 'b.example'), ['NOERROR', 'REFUSED 15'])
    }
    assert.deepEqual(states(lab), { 'p/b.yaml': 'in-force' })
  })
})

test('Daemon follows two policies that swap files in one edit', async () => {
  const files = {
    'endpoints.yaml': ME,
    'p/a.yaml': policyText('one', ['a.example']),
    'p/b.yaml': policyText('two', ['b.example']),
  }
  await withLab({ files, policies: ['p'] }, async (lab) => {
    lab.write('p/a.yaml', policyText('two', ['c.example']))
    lab.write('p/b.yaml', policyText('one', ['d.example']))
    await lab.pass(SETTLED)
    assert.deepEqual(await told(lab, 'a.example', 'b.example', 'c.example', 'd.example'), [
      'REFUSED 15',
      'REFUSED 15',
      'NOERROR',
      'NOERROR',
    ])
    assert.deepEqual(states(lab), { 'p/a.yaml': 'in-force', 'p/b.yaml': 'in-force' })
  })
})

test('Daemon refuses a policy that another file has, and loads it when the other file drops it', async () => {
  const files = {
    'endpoints.yaml': ME,
    'p/a.yaml': policyText('one', ['a.example']),
    'p/b.yaml': policyText('two', ['b.example']),
  }
  await withLab({ files, policies: ['p'] }, async (lab) => {
    lab.write('p/a.yaml', policyText('two', ['c.example']))
    await lab.pass(SETTLED)
    assert.deepEqual(await told(lab, 'a.example', 'b.example', 'c.example'), [
      'NOERROR',
      'NOERROR',
      'REFUSED 15',
    ])
    assert.deepEqual(states(lab), { 'p/a.yaml': 'last-good', 'p/b.yaml': 'in-force' })
    lab.write('p/b.yaml', policyText('three', ['b.example']))
    await lab.pass(SETTLED)
    assert.deepEqual(await told(lab, 'a.example', 'b.example', 'c.example'), [
      'REFUSED 15',
      'NOERROR',
      'NOERROR',
    ])
    assert.deepEqual(states(lab), { 'p/a.yaml': 'in-force', 'p/b.yaml': 'in-force' })
  })
})

test('Daemon keeps the endpoints of a file that is empty during an edit while another file settles', async () => {
  const files = {
    'policy.yaml': policyText('web', ['a.example']),
    'one.yaml': ME,
    'two.yaml': endpointsText({ other: '127.0.0.2' }),
  }
  await withLab({ files, endpoints: ['one.yaml', 'two.yaml'], config: AT_ONCE }, async (lab) => {
    lab.write('one.yaml', endpointsText({ me: '127.0.0.1', third: '127.0.0.3' }))
    await lab.pass(100)
    lab.empty('two.yaml')
    await lab.pass(100)
    assert.deepEqual(
      await told(lab, 'a.example@127.0.0.1', 'a.example@127.0.0.2', 'a.example@127.0.0.3'),
      ['NOERROR', 'NOERROR', 'NOERROR'],
    )
    lab.write('two.yaml', endpointsText({ other: '127.0.0.4' }))
    await lab.pass(SETTLED)
    assert.deepEqual(await told(lab, 'a.example@127.0.0.2', 'a.example@127.0.0.4'), [
      'REFUSED 18',
      'NOERROR',
    ])
  })
})

test('Daemon keeps the last good version of a broken endpoints file, and loads the others', async () => {
  const files = {
    'policy.yaml': policyText('web', ['a.example']),
    'one.yaml': ME,
    'two.yaml': endpointsText({ other: '127.0.0.2' }),
  }
  await withLab({ files, endpoints: ['one.yaml', 'two.yaml'], config: AT_ONCE }, async (lab) => {
    lab.write('one.yaml', 'endpoints: [{ name: me, adresses: [127.0.0.1] }]\n')
    await lab.pass(SETTLED)
    lab.write('two.yaml', endpointsText({ other: '127.0.0.4' }))
    await lab.pass(SETTLED)
    const fault = statusView(lab.admin).faults.at(-1)
    assert.deepEqual([fault?.file, fault?.line, fault?.column], [lab.path('one.yaml'), 1, 25])
    assert.deepEqual(
      await told(lab, 'a.example@127.0.0.1', 'a.example@127.0.0.2', 'a.example@127.0.0.4'),
      ['NOERROR', 'REFUSED 18', 'NOERROR'],
    )
  })
})

test('Daemon serves new endpoints, refuses removed ones and judges changed labels anew', async () => {
  const files = {
    'p/a.yaml': policyText('a', ['a.example'], { app: 'me' }),
    'p/b.yaml': policyText('b', ['b.example'], { app: 'other' }),
    'endpoints.yaml': ME,
  }
  const asked = [
    'a.example@127.0.0.1',
    'b.example@127.0.0.1',
    'a.example@127.0.0.2',
    'b.example@127.0.0.2',
  ]
  await withLab({ files, policies: ['p'], config: AT_ONCE }, async (lab) => {
    const unknown = 'REFUSED 18'
    assert.deepEqual(await told(lab, ...asked), ['NOERROR', 'REFUSED 15', unknown, unknown])
    lab.write('endpoints.yaml', TWO)
    await lab.pass(SETTLED)
    assert.deepEqual(await told(lab, ...asked), ['NOERROR', 'REFUSED 15', 'REFUSED 15', 'NOERROR'])
    lab.write(
      'endpoints.yaml',
      endpointsText({ me: '127.0.0.1', other: '127.0.0.2' }, (name) =>
        name === 'me' ? 'other' : 'me',
      ),
    )
    await lab.pass(SETTLED)
    assert.deepEqual(await told(lab, ...asked), ['REFUSED 15', 'NOERROR', 'NOERROR', 'REFUSED 15'])
    lab.write('endpoints.yaml', ME)
    await lab.pass(SETTLED)
    assert.deepEqual(await told(lab, ...asked), ['NOERROR', 'REFUSED 15', unknown, unknown])
  })
})

const LIMITS = [
  {
    limit: 'selectors',
    bound: 2,
    file: 'policy.yaml',
    text: policyText('web', ['a.example', 'b.example', 'c.example']),
    message: /:5:3: found 3 selectors in all, limits\.selectors allows 2$/,
  },
  {
    limit: 'endpoints',
    bound: 1,
    file: 'endpoints.yaml',
    text: TWO,
    message: /endpoints\.yaml:3:5: found 2 endpoints, limits\.endpoints allows 1$/,
  },
  {
    limit: 'policy-entries',
    bound: 4,
    file: 'policy.yaml',
    text: policyText('web', ['a.example', 'b.example', 'c.example', 'd.example', 'e.example']),
    message: /:5:3: endpoint me needs \d+ policy entries, limits\.policy-entries allows 4$/,
  },
] as const

for (const { limit, bound, file, text, message } of LIMITS) {
  test(`Daemon refuses a change past limits.${limit} completely, reports it, and is not ready until it fits`, async () => {
    const fits = policyText('web', ['a.example'])
    const files = { 'policy.yaml': fits, 'endpoints.yaml': ME }
    const config = `limits: { ${limit}: ${bound} }\n${AT_ONCE}`
    await withLab({ files, config }, async (lab) => {
      lab.write(file, text)
      lab.write('endpoints.yaml', file === 'endpoints.yaml' ? text : ME)
      await lab.pass(SETTLED)
      const asked = ['a.example', 'b.example', 'a.example@127.0.0.2']
      assert.deepEqual(await told(lab, ...asked), ['NOERROR', 'REFUSED 15', 'REFUSED 18'])
      const { faults, notReady, health } = statusView(lab.admin)
      const [fault] = faults.map(
        (each) => `${each.file}:${each.line}:${each.column}: ${each.message}`,
      )
      assert.match(fault ?? '', message)
      assert.equal(faults.length, 1)
      assert.deepEqual(
        [health, notReady.filter((reason) => !reason.includes('upstream'))],
        ['degraded', [PAST_BOUND]],
      )
      const state = file === 'policy.yaml' ? 'last-good' : 'in-force'
      assert.deepEqual(states(lab), { 'policy.yaml': state })
      lab.write(file, file === 'policy.yaml' ? policyText('web', ['b.example']) : ME)
      await lab.pass(SETTLED)
      const after = file === 'policy.yaml' ? ['REFUSED 15', 'NOERROR'] : ['NOERROR', 'REFUSED 15']
      assert.deepEqual(await told(lab, ...asked.slice(0, 2)), after)
      assert.deepEqual(statusView(lab.admin).faults, [])
      assert.deepEqual(states(lab), { 'policy.yaml': 'in-force' })
    })
  })
}
