// The comparisons of EXPECT and COUNTER. Each kind reads its own words. README.md lists all of them.

import assert from 'node:assert/strict'
import { widthOf } from '../../../src/core/ip.ts'
import { hashOctets } from '../../../src/core/tables/keyed-hash.ts'
import { FLOW_KINDS } from '../../../src/flows/record/flow-kinds.ts'
import { prefixOf, wireOf } from '../../support/nodes/node.ts'
import { canonicalAddress } from './addresses.ts'
import { judge, sendOn } from './packets.ts'
import type { World } from './world.ts'

type Expectation = (world: World, words: readonly string[]) => void

export const EXPECTATIONS: Readonly<Record<string, Expectation>> = {
  answer: expectAnswer,
  'no-answer': ({ clients }) => assert.equal(clients.last, undefined, 'no reply has arrived'),
  packet: (world, [from = '', to = '', verdict]) => assert.equal(judge(world, from, to), verdict),
  data: (world, [from = '', to = '', verdict]) => assert.equal(sendOn(world, from, to), verdict),
  labels: (world, [prefix = '', ...labels]) =>
    assert.deepEqual(labelsOf(world, prefix), labels[0] === 'none' ? [] : [...labels].sort()),
  addresses: (world, [count]) => assert.equal(taught(world).length, Number(count)),
  identities: (world, [count]) => assert.equal(new Set(taught(world)).size, Number(count)),
  name: (world, [endpoint = '', name = '', address = '', state]) =>
    assert.equal(stateOf(world, endpoint, name, address), state),
}

/** `RCODE [TC] [ADDRESS ...] [EDE N]`: exactly these addresses, and this error or none. */
function expectAnswer({ clients }: World, [rcode, ...words]: readonly string[]): void {
  const { last } = clients
  assert.ok(last !== undefined, 'a reply has arrived')
  const at = words.indexOf('EDE')
  const ede = at < 0 ? undefined : Number(words[at + 1])
  const given = at < 0 ? words : words.slice(0, at)
  const truncated = given[0] === 'TC'
  const addresses = given
    .slice(truncated ? 1 : 0)
    .map(canonicalAddress)
    .sort()
  assert.deepEqual(last, { rcode, truncated, ede, addresses })
}

/** Labels of `PREFIX` for the node, or of `PREFIX@ENDPOINT` in that endpoint's own scope. */
function labelsOf(world: World, text: string): readonly string[] {
  const { core } = world
  const [prefix = '', endpoint] = text.split('@')
  const { family, octets, length } = prefixOf(prefix)
  const scope = endpoint === undefined ? 0 : world.endpoint(endpoint).id
  const row = core.ipcache.prefixes.findIn(scope, family, octets, 0, length)
  return core.labelSets.format(row === 0 ? 0 : core.ipcache.prefixes.derived[row]!)
}

/** Identities of the datapath's entries whose labels come from names, one per entry. */
function taught({ core, kernel }: World): readonly number[] {
  const { prefixes } = kernel.dump()
  const identities: number[] = []
  for (let i = 0; i < prefixes.count; i++) {
    const set = core.allocator.setOf(prefixes.identity(i))
    if (set !== undefined && core.labelSets.get(set).fqdnCount > 0) {
      identities.push(prefixes.identity(i))
    }
  }
  return identities
}

function stateOf(world: World, endpoint: string, name: string, address: string): string {
  const { names, ipcache } = world.core
  const wire = wireOf(name)
  const nameRow = names.names.find(wire, 0, wire.length, hashOctets(wire, 0, wire.length))
  const { family, octets } = prefixOf(address)
  const prefix = ipcache.prefixes.find(family, octets, 0, widthOf(family))
  if (nameRow === 0 || prefix === 0) return 'gone'
  const mapping = names.mappings.find(nameRow, prefix)
  const pair = mapping === 0 ? 0 : names.entries.find(mapping, world.endpoint(endpoint).id)
  return pair === 0 ? 'gone' : names.stateOf(pair)
}

/** Every number that a scenario can check, as `part.name`. */
export function countersOf(world: World): ReadonlyMap<string, number> {
  const { core, admission, settlement, learner, releases, responder, upstream, kernel } = world
  const { allocator, committer, expiry } = core
  const groups = {
    pipeline: { ...admission.counters, ...settlement.counters },
    learner: learner.counters,
    stripping: { ...world.stripping.counters, ...world.stripping.taken },
    releases: { ...releases.counters, waiting: releases.count },
    milliseconds: millisecondsOf(world),
    clients: world.clients.counters,
    responder: responder.counters,
    upstream: upstream.counters,
    kernel: kernel.reports.counters(),
    flows: flowsOf(world),
    committer: { commits: Number(committer.revision), refused: committer.refused },
    identities: {
      dynamic: allocator.dynamicInUse,
      allocations: allocator.allocations,
      fallbacks: allocator.fallbacks,
    },
    matches: world.matches,
    expiry: { forgotten: expiry.forgotten, kept: expiry.kept },
  }
  return new Map(
    Object.entries(groups).flatMap(([part, counters]) =>
      Object.entries(counters).map(([name, value]) => [`${part}.${name}`, value] as const),
    ),
  )
}

/** The sums of the histograms of times. */
function millisecondsOf({ settlement, releases, unknown }: World): Record<string, number> {
  const { exact, degraded, heldOut, failed } = settlement.times
  const { datapath, order } = releases.times
  const all = { exact, degraded, heldOut, failed, datapath, order, endpoint: unknown.times }
  return Object.fromEntries(Object.entries(all).map(([name, { sum }]) => [name, sum]))
}

function flowsOf({ flows }: World): Record<string, number> {
  const counts: Record<string, number> = Object.fromEntries(FLOW_KINDS.map((kind) => [kind, 0]))
  for (let i = flows.oldest; i < flows.count; i++) {
    const { kind } = flows.get(i)
    counts[kind] = (counts[kind] ?? 0) + 1
  }
  return counts
}
