// The fake API server as a process of its own, with policies and one pod on each node, for tests that measure many clients.
//   node --import tsx fake-server.ts POLICIES PODS
// Prints `ready ORIGIN`. SIGHUP breaks all connections, stops listening and forgets the history. SIGUSR2 listens again, at the same port.
// SIGTERM ends the process.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { stayAlive } from '../../../src/core/clock.ts'
import { ApiModel } from './api-model.ts'
import { makeCertificate } from './certificates.ts'
import { FakeApiServer } from './fake-api-server.ts'

const [policies, pods] = process.argv.slice(2).map(Number)
const folder = mkdtempSync(join(tmpdir(), 'namegate-fake-server-'))
const certificate = makeCertificate(folder)
rmSync(folder, { recursive: true })

const model = new ApiModel()
const spec = { endpointSelector: {}, egress: [{ toFQDNs: [{ matchName: 'www.example.com' }] }] }
for (let i = 0; i < Number(policies); i++) {
  model.put('ciliumnetworkpolicies', { metadata: { name: `p${i}`, namespace: 'shop' }, spec })
}
for (let i = 0; i < Number(pods); i++) {
  const nodeName = `node-${i}`
  model.put('pods', { metadata: { name: `p${i}`, namespace: 'shop' }, spec: { nodeName } })
}

let server = new FakeApiServer(model, certificate)
await server.listen()
const { port, origin } = server
console.log(`ready ${origin}`)

process.on('SIGHUP', () => {
  void server.close()
  // A version is too old only if something came after it.
  model.put('namespaces', { metadata: { name: 'later' } })
  model.compact()
  server = new FakeApiServer(model, certificate)
})
process.on('SIGUSR2', () => void server.listen(port))
stayAlive()
