import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatFault } from '../../../src/core/errors.ts'
import { formatPrefix } from '../../../src/core/ip.ts'
import { overlapFaults, parseEndpoints } from '../../../src/endpoints/file.ts'
import { withInterfaceAddresses } from '../../../src/sources/files/endpoint-files.ts'

const OF: Readonly<Record<string, readonly string[]>> = {
  eth0: ['fd00::5', '10.0.0.5', 'fe80::1', '10.0.0.5'],
  eth1: ['10.1.0.5'],
  bare: [],
}

function read(...items: readonly string[]) {
  const text = `endpoints:\n${items.map((item) => `  - { ${item} }\n`).join('')}`
  return withInterfaceAddresses(parseEndpoints(text, 'e.yaml'), (name) => OF[name] ?? [])
}

test('withInterfaceAddresses adds the addresses of an egress interface if none are written', () => {
  const rows: readonly (readonly [item: string, addresses: string, reason: string])[] = [
    [
      'name: a, interface: eth0, hook: egress',
      '10.0.0.5/32 fd00::5/128 127.0.0.0/8 ::1/128',
      'each once, in a fixed order, none of link scope; loopback, from which its processes ask, too',
    ],
    ['name: a, interface: eth0, hook: egress, addresses: [192.0.2.1]', '192.0.2.1/32', 'written'],
    ['name: a, cgroup: a.slice', '', "a cgroup shares the host's"],
  ]
  for (const [item, addresses, reason] of rows) {
    const { items, faults } = read(item)
    assert.deepEqual(faults, [], reason)
    assert.equal(items[0]?.addresses.map(formatPrefix).join(' '), addresses, reason)
    assert.equal(items[0]?.addresses.length, items[0]?.addressPositions.length, reason)
  }
})

test('withInterfaceAddresses refuses an endpoint without any address', () => {
  const rows: readonly (readonly [item: string, fault: string, reason: string])[] = [
    [
      'name: a, interface: bare, hook: egress',
      'e.yaml:2:5: a: found no addresses, and interface bare has none to take, expected some',
      'it has none yet',
    ],
    [
      'name: a, interface: gone, hook: egress',
      'e.yaml:2:5: a: found no addresses, and interface gone has none to take, expected some',
      'it does not exist',
    ],
    [
      'name: a, interface: eth0',
      'e.yaml:2:5: endpoints[0]: found no address, expected at least one',
      "the host's side of a veth has the gateway's",
    ],
    [
      'name: a, interface: eth0, hook: egress, addresses: []',
      'e.yaml:2:58: endpoints[0].addresses: found no address, expected at least one',
      'none is written',
    ],
  ]
  for (const [item, fault, reason] of rows) {
    const { items, faults } = read(item)
    assert.deepEqual([items, faults.map(formatFault)], [[], [fault]], reason)
  }
})

test('withInterfaceAddresses does not compare two such endpoints', () => {
  const { items } = read(
    'name: a, interface: eth0, hook: egress',
    'name: b, interface: eth1, hook: egress',
  )
  const [first] = overlapFaults(items)
  assert.match(
    first === undefined ? '' : formatFault(first),
    /^e\.yaml:3:5: b: found 127\.0\.0\.0\/8/,
  )
})
