// What commands say about a refusal while a policy file has a fault: the file and line, because its present text may allow the name.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { listOf } from '../../src/cli/fields.ts'
import { until } from '../support/peers/client.ts'
import { endpointsText, policyText } from '../support/nodes/daemon-files.ts'
import { DaemonFolder, type RunningDaemon } from '../support/nodes/daemon-process.ts'

const SAID =
  /a file has a fault, so its present text is not in force: \S*policy\.yaml:8:7: unknown field/

let folder: DaemonFolder
let daemon: RunningDaemon

before(async () => {
  folder = new DaemonFolder({
    files: {
      'policy.yaml': policyText('web', ['old.example'], { app: 'shop' }),
      'jobs.yaml': policyText('jobs', ['job.example'], { app: 'job' }),
      'endpoints.yaml': endpointsText({ shop: '10.9.8.7', job: '10.9.8.8' }),
    },
    config: { policies: '{ paths: [policy.yaml, jobs.yaml] }' },
  })
  daemon = await folder.serve()
})

after(async () => {
  await daemon.process.stop()
  folder.remove()
})

const COMMANDS: readonly (readonly string[])[] = [
  ['explain', 'new.example', '--as', 'shop'],
  ['explain', '--as', 'shop', '--address', '203.0.113.9', '--port', '443'],
  ['ask', 'new.example', '--as', 'shop'],
  ['flows', '--last', '1'],
  ['policy', 'wait'],
]

async function said(args: readonly string[]): Promise<string> {
  const { stdout, stderr } = await folder.namegate(...args)
  return stdout + stderr
}

function isFaulty(status: Readonly<Record<string, unknown>>): boolean {
  return listOf(status['faults']).length > 0
}

test('explain, ask and flows beside a refusal, and policy wait, name the file with a fault while it has the fault', async () => {
  for (const args of COMMANDS) assert.doesNotMatch(await said(args), /has a fault/)
  const text = policyText('web', ['old.example', 'new.example'], { app: 'shop' })
  folder.write('policy.yaml', text.replace('toFQDNs', 'toFQDN'))
  await until('the fault', async () => isFaulty(await daemon.status()))
  for (const args of COMMANDS) assert.match(await said(args), SAID, args.join(' '))
  const other = await said(['explain', 'new.example', '--as', 'job'])
  assert.doesNotMatch(other, /has a fault/, 'the file does not select this endpoint')
  const allowed = await said(['explain', 'old.example', '--as', 'shop'])
  assert.doesNotMatch(allowed, /has a fault/, 'no refusal')
  const { stdout } = await folder.namegate('flows', '--last', '1', '-o', 'json')
  assert.doesNotMatch(stdout, /has a fault/)
})
