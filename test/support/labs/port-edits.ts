// The nftables datapath in the network namespace of this process, with one endpoint whose policy changes again and again:
// `port-edits.ts INTERFACE SOURCE PEER PORT EDITS`. UDP to PORT of PEER is always allowed, and beside it another port with each edit.
// Prints `ready`. On SIGUSR2 it makes the edits and prints `edited`.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { UDP } from '../../../src/core/protocol.ts'
import type { PolicyEntry } from '../../../src/datapath/entries.ts'
import { NftablesDatapath } from '../../../src/datapath/nftables/adapter.ts'
import { loadNetlink, loadPosix } from '../../../src/native/native.ts'
import { batch, commit, endpoint, LEARNED, policy, prefix, WORLD_4 } from '../../contract/bench.ts'

const [name = '', source = '', peer = '', port = '', edits = ''] = process.argv.slice(2)
/** More than the port sets in use, so that every edit makes a new one. */
const VERSIONS = 8
const OTHER_PORTS = 8000

const datapath = new NftablesDatapath({
  netlink: loadNetlink(),
  posix: loadPosix(),
  prefixesMax: 1024,
  policyEntriesMax: 1024,
})
datapath.start()
const entry = (to: number): PolicyEntry => policy({ identity: LEARNED, protocol: UDP, port: to })
const other = (version: number): number => OTHER_PORTS + (version % VERSIONS)
const failures = commit(datapath, {
  policyUpserts: [entry(Number(port)), entry(other(0))],
  prefixUpserts: batch([[`${peer}/32`, LEARNED, WORLD_4]]),
  endpointUpserts: [
    endpoint({ hook: { kind: 'interface', name, side: 'ingress' }, sources: [prefix(source)] }),
  ],
})
assert.deepEqual(failures, [])

const began = once(process, 'SIGUSR2')
const awake = setInterval(() => undefined, 1000)
process.stdout.write('ready\n')
await began
for (let i = 0; i < Number(edits); i++) {
  const changes = { policyUpserts: [entry(other(i + 1))], policyRemovals: [entry(other(i))] }
  assert.deepEqual(commit(datapath, changes), [])
}
process.stdout.write('edited\n')
clearInterval(awake)
datapath.stop({ leaveEnforcing: true })
