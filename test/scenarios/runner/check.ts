// The checks that hold in every scenario. After each step, the datapath has exactly the wanted entries. When an answer leaves, the
// datapath has every address in it with the identity that the node wants.

import assert from 'node:assert/strict'
import type { PolicyEntry } from '../../../src/datapath/entries.ts'
import { prefixOf } from '../../support/nodes/node.ts'
import { keyOfPrefix } from '../../support/models/recorder.ts'
import type { Reply } from './client.ts'
import type { World } from './world.ts'

/** Runs after a step, but not while the datapath refuses entries or has a commit under way, or while labels move. */
export function checkDatapath({ core, kernel, transition, endpoints }: World): void {
  if (kernel.refusal !== 'nothing' || core.committer.refused > 0 || transition.pending) return
  if (core.committer.isUnderWay) return
  const dump = kernel.dump()
  const have = new Map<string, string>()
  for (let i = 0; i < dump.prefixes.count; i++) {
    have.set(
      keyOfPrefix(dump.prefixes.prefix(i), dump.prefixes.scope(i)),
      `${dump.prefixes.identity(i)} ${dump.prefixes.addressClass(i)}`,
    )
  }
  const wanted = new Map<string, string>()
  const { prefixes } = core.ipcache
  for (let row = 1; row <= prefixes.slots.high; row++) {
    if (prefixes.wanted[row] === 0) continue
    const key = keyOfPrefix(prefixes.prefix(row), prefixes.scoped.scope[row]!)
    wanted.set(key, `${prefixes.wanted[row]} ${prefixes.addressClass[row]}`)
  }
  assert.deepEqual(sorted(have), sorted(wanted), 'prefixes in the datapath are those wanted')
  const policies = [...core.policyMaps.entries()].map(entryText).sort()
  const message = 'policy entries in the datapath are those wanted'
  assert.deepEqual(dump.policies.map(entryText).sort(), policies, message)
  const known = [...endpoints.registry].map(({ id }) => String(id)).sort()
  const fenced = dump.endpoints.map(({ id }) => String(id)).sort()
  assert.deepEqual(fenced, known, 'endpoints in the datapath are those known')
}

/** Runs when an answer leaves, unless the kernel refuses entries and `dns.hold.on-limit` releases answers anyway. */
export function checkPromise(
  { core, kernel, slow, config, endpoints }: World,
  { addresses, rcode }: Reply,
  to: string,
): void {
  if (rcode !== 'NOERROR' || addresses.length === 0) return
  const isLate = kernel.refusal !== 'nothing' || slow.isSlow
  if (isLate && config.dns.hold.onLimit === 'release') return
  const { prefixes } = core.ipcache
  const dump = kernel.dump()
  const have = new Map<string, number>()
  for (let i = 0; i < dump.prefixes.count; i++) {
    const key = keyOfPrefix(dump.prefixes.prefix(i), dump.prefixes.scope(i))
    have.set(key, dump.prefixes.identity(i))
  }
  const client = prefixOf(to)
  const scope = endpoints.registry.byAddress(client.family, client.octets, 0)?.id ?? 0
  for (const address of addresses) {
    const prefix = prefixOf(address)
    const { family, octets, length } = prefix
    const own = prefixes.findIn(scope, family, octets, 0, length)
    const row = own === 0 ? prefixes.find(family, octets, 0, length) : own
    const wanted = row === 0 ? 0 : prefixes.wanted[row]!
    const text = keyOfPrefix(prefix, own === 0 ? 0 : scope)
    assert.equal(have.get(text) ?? 0, wanted, `${text} is enforced when its answer leaves`)
  }
}

function sorted(map: ReadonlyMap<string, string>): readonly string[] {
  return [...map].map(([prefix, place]) => `${prefix} ${place}`).sort()
}

function entryText({ endpoint, identity, protocol, port, portBits, verdict }: PolicyEntry): string {
  return `${endpoint} ${identity} ${protocol} ${port}/${portBits} ${verdict}`
}
