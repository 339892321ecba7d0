// Interfaces on which an endpoint's queries can arrive (Arrivals), on fake time, with a table of interfaces.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { endpointId, generation } from '../../../src/core/ids.ts'
import type { Endpoint, EndpointHook } from '../../../src/endpoints/registry.ts'
import { Arrivals } from '../../../src/proxy/pipeline/client-endpoints.ts'
import { FakeClock } from '../../support/fake-clock.ts'

const LOOPBACK = 1
const ENODEV = -19

interface World {
  readonly clock: FakeClock
  /** Name -> index and master. */
  readonly links: Map<string, { readonly index: number; readonly master: number }>
  readonly arrivals: Arrivals
  lookups: number
}

function mkWorld(): World {
  const clock = new FakeClock()
  const links = new Map([
    ['lxc1', { index: 4, master: 0 }],
    ['port1', { index: 5, master: 9 }],
    ['br0', { index: 9, master: 0 }],
  ])
  const interfaces = {
    ifIndex: (name: string) => {
      world.lookups++
      return links.get(name)?.index ?? ENODEV
    },
    ifMaster: (index: number) =>
      [...links.values()].find((link) => link.index === index)?.master ?? ENODEV,
  }
  const world: World = { clock, links, arrivals: new Arrivals({ clock, interfaces }), lookups: 0 }
  return world
}

function mkEndpoint(hook: EndpointHook): Endpoint {
  const [id, own] = [endpointId(1), generation(1)]
  return { id, generation: own, name: 'e', addresses: [], labels: [], hook, audit: false }
}

const on = (name: string, side: 'ingress' | 'egress' = 'ingress') =>
  mkEndpoint({ kind: 'interface', name, side })

test('Arrivals admits a query on the interface of its endpoint, and on no other', () => {
  const cgroup = mkEndpoint({ kind: 'cgroup', path: 'a.slice' })
  const nowhere = mkEndpoint({ kind: 'none' })
  const rows: readonly (readonly [Endpoint, number, boolean, string])[] = [
    [on('lxc1'), 4, true, 'its own interface'],
    [on('lxc1'), 5, false, 'the interface of another'],
    [on('lxc1'), LOOPBACK, false, 'a process of the host forges its address'],
    [on('lxc1'), 0, true, 'the socket has no interface'],
    [on('port1'), 5, true, 'its own bridge port'],
    [on('port1'), 9, true, 'the bridge of its port'],
    [on('port1'), 4, false, 'it is no port of that bridge'],
    [on('gone'), 4, false, 'its interface does not exist'],
    [on('lxc1', 'egress'), LOOPBACK, true, 'inside the workload, queries arrive on loopback'],
    [cgroup, LOOPBACK, true, 'a process of the host'],
    [cgroup, 4, false, 'a pod forges an address of the host'],
    [nowhere, 7, true, 'it has no hook'],
  ]
  for (const [endpoint, ifindex, expected, reason] of rows) {
    assert.equal(mkWorld().arrivals.mayArrive(endpoint, ifindex), expected, reason)
  }
})

test('Arrivals looks a name up at most once a second while queries arrive on the right interface', () => {
  const world = mkWorld()
  for (let i = 0; i < 1000; i++) {
    assert.ok(world.arrivals.mayArrive(on('lxc1'), 4))
    world.clock.advance(5)
  }
  assert.ok(world.lookups <= 6, `${world.lookups} lookups in 5 s`)
})

test('Arrivals looks again at most every 100 ms while queries arrive on other interfaces', () => {
  const world = mkWorld()
  for (let i = 0; i < 1000; i++) {
    assert.ok(!world.arrivals.mayArrive(on('lxc1'), 5))
    world.clock.advance(1)
  }
  assert.ok(world.lookups <= 12, `${world.lookups} lookups in 1 s`)
})

test('Arrivals follows an interface that was made again, became a bridge port, or was removed', () => {
  const world = mkWorld()
  const { arrivals, links, clock } = world
  const pod = on('lxc1')
  assert.ok(arrivals.mayArrive(pod, 4))
  links.set('lxc1', { index: 12, master: 0 })
  arrivals.forget()
  assert.ok(arrivals.mayArrive(pod, 12), 'reported: at once')
  assert.ok(!arrivals.mayArrive(pod, 4))
  links.set('lxc1', { index: 12, master: 9 })
  clock.advance(100)
  assert.ok(arrivals.mayArrive(pod, 9), 'not reported: within 100 ms')
  links.delete('lxc1')
  clock.advance(1000)
  assert.ok(!arrivals.mayArrive(pod, 12), 'removed: within a second')
})
