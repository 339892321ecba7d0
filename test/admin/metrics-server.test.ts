import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { MetricsServer } from '../../src/admin/metrics-server.ts'
import { UnavailableError } from '../../src/core/errors.ts'
import { http, mkAdmin } from '../support/nodes/admin.ts'
import { Node } from '../support/nodes/node.ts'

let reasons: readonly string[] = []
const position = { file: 'p.yaml', line: 1, column: 2 }
const { state } = mkAdmin(new Node(), {
  notReady: () => reasons,
  faults: () => [{ position, message: 'found x' }],
})
const onError = (): undefined => undefined
const server = new MetricsServer({ state, address: '127.0.0.1', port: 0, onError })
await server.start()
after(() => server.stop())

test('MetricsServer serves metrics, health and readiness, and nothing else', async () => {
  const { port } = server
  const rows: readonly (readonly [path: string, status: number, text: string])[] = [
    ['/metrics', 200, 'namegate_x 1\n'],
    ['/metrics?a=b', 200, 'namegate_x 1\n'],
    ['/healthz', 200, 'ok\n'],
    ['/readyz', 200, 'ready\np.yaml:1:2: found x\n'],
    ['/v1/status', 404, 'expected /metrics, /healthz or /readyz\n'],
  ]
  for (const [path, status, text] of rows) {
    const answer = await http({ port }, path)
    assert.deepEqual([answer.status, answer.text], [status, text], path)
  }
  assert.equal((await http({ port }, '/metrics', { method: 'POST' })).status, 405)
  reasons = ['no upstream has answered yet']
  const unready = await http({ port }, '/readyz')
  assert.equal(unready.status, 503)
  assert.match(unready.text, /^not ready: no upstream has answered yet\n/)
})

test('MetricsServer names the address in use and the remedy', async () => {
  const second = new MetricsServer({ state, address: '127.0.0.1', port: server.port, onError })
  await assert.rejects(second.start(), (error) => {
    assert.ok(error instanceof UnavailableError)
    assert.match(
      error.message,
      /127\.0\.0\.1 port \d+: .*EADDRINUSE.*: give another metrics\.address/,
    )
    return true
  })
})
