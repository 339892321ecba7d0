// `POST /v1/audit` says that a setting is in force: its answer waits for the datapath.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { auditBody, type AuditAnswer } from '../../src/admin/audit.ts'
import { mkAdmin } from '../support/nodes/admin.ts'
import type { Node } from '../support/nodes/node.ts'
import { mkSlow } from '../support/nodes/slow-node.ts'

const BODY = { scope: 'endpoint', name: 'a', on: true }
const WAIT_MS = 10_000

/** Asks for audit of endpoint `a`. The datapath has not confirmed it when this returns. */
async function auditLate() {
  const { node, slow } = mkSlow()
  const { state } = mkAdmin(node, {
    setAudit: () => {
      node.endpoints.setAudit(node.endpoint('a'), true)
      node.core.committer.commit()
      return { kind: 'ok', endpoints: ['a'] }
    },
  })
  const answers: AuditAnswer[] = []
  void auditBody(state, BODY).then((answer) => answers.push(answer))
  await wait(node, 50)
  assert.equal(answers.length, 0)
  return { node, slow, answer: () => answers[0] }
}

async function wait(node: Node, ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= 10) {
    node.clock.advance(10)
    await new Promise((done) => setImmediate(done))
  }
}

test('auditBody answers when the datapath has confirmed the setting', async () => {
  const { node, slow, answer } = await auditLate()
  slow.end()
  await wait(node, 50)
  assert.equal(answer()?.kind, 'ok')
})

test('auditBody reports a datapath that does not confirm the setting in time', async () => {
  const { node, answer: answerOf } = await auditLate()
  await wait(node, WAIT_MS + 50)
  const answer = answerOf()
  assert.ok(answer?.kind === 'problem')
  assert.deepEqual(answer.problem, {
    kind: 'unavailable',
    detail: 'audit: set, but not in force yet: the datapath is behind',
  })
})
