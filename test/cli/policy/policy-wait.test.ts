import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { AdminServer } from '../../../src/admin/server.ts'
import { systemClock } from '../../../src/core/clock.ts'
import { UnavailableError, UsageError } from '../../../src/core/errors.ts'
import { mkAdmin } from '../../support/nodes/admin.ts'
import { namegate, objectIn, runCommand } from '../../support/nodes/command.ts'
import { mkPolicyNode } from '../../support/nodes/policy-node.ts'

const policyWaitCommand = namegate('policy wait')

const folder = mkdtempSync(join(tmpdir(), 'namegate-wait-'))
const socket = join(folder, 'admin.sock')
const node = mkPolicyNode(['egress: [ {} ]'])
let realized = 0
const { state } = mkAdmin(node, {
  clock: systemClock,
  transition: {
    get realizedRevision() {
      return realized
    },
    pending: false,
  },
})
const server = new AdminServer({ state, socket, onError: (error) => assert.ifError(error) })
await server.start()
after(async () => {
  await server.stop()
  rmSync(folder, { recursive: true })
})

test('policyWaitCommand gives up after its time with exit code 1', async () => {
  const { code, out } = await runCommand(policyWaitCommand, '--socket', socket, '--timeout', '50ms')
  assert.deepEqual([code, out], [1, 'revision 1 is not realized: 1 desired, 0 realized\n'])
})

test('policyWaitCommand waits until the wanted revision is realized', async () => {
  let isOver = false
  const waiting = runCommand(policyWaitCommand, '--socket', socket).then((ran) => {
    isOver = true
    return ran
  })
  await new Promise((resolve) => setTimeout(resolve, 100))
  assert.equal(isOver, false)
  realized = 1
  const { code, out } = await waiting
  assert.deepEqual([code, out], [0, 'revision 1 is realized: 1 desired, 1 realized\n'])
})

test('policyWaitCommand waits for a revision to come, and prints JSON only with -o json', async () => {
  const args = ['--socket', socket, '--revision', '2', '--timeout', '40ms', '-o', 'json']
  const late = await runCommand(policyWaitCommand, ...args)
  assert.equal(late.code, 1)
  realized = 7
  const { code, out } = await runCommand(policyWaitCommand, ...args)
  assert.equal(code, 0)
  assert.deepEqual(objectIn(out), { revision: 2, policyRevision: 1, realizedRevision: 7 })
})

test('policyWaitCommand refuses wrong arguments, and reports a missing daemon', async () => {
  const rows = [['now'], ['--revision', 'x'], ['--timeout', '5'], ['--timeout', '-1s']] as const
  for (const args of rows) {
    assert.equal((await runCommand(policyWaitCommand, ...args)).code, 2, args.join(' '))
  }
  const long = ['--socket', socket, '--timeout', '2h']
  await assert.rejects(runCommand(policyWaitCommand, ...long), UsageError)
  const gone = ['--socket', join(folder, 'nobody.sock')]
  await assert.rejects(runCommand(policyWaitCommand, ...gone), UnavailableError)
})
