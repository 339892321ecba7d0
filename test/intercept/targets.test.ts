import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findTargets, parseLinks } from '../../src/intercept/targets.ts'
import { mkPlan } from '../support/labs/intercept-plans.ts'

const LINKS = parseLinks(
  JSON.stringify([
    { ifindex: 1, ifname: 'lo', address: '00:00:00:00:00:00' },
    { ifindex: 2, ifname: 'eth0', address: '02:00:00:00:00:02' },
    { ifindex: 3, ifname: 'br0', address: '02:00:00:00:00:03', linkinfo: { info_kind: 'bridge' } },
    port(4, 'veth4', 'br0', 'bridge'),
    port(5, 'veth5', 'br0', 'bridge'),
    { ifindex: 6, ifname: 'lxc6', address: '02:00:00:00:00:06' },
    port(7, 'lxc7', 'bond0', 'bond'),
    port(8, 'lxc8', 'blue', 'vrf'),
    { ifindex: 9, ifname: 'tun9', address: '10.0.0.1' },
    'no link',
  ]),
)

function port(ifindex: number, ifname: string, master: string, kind: string): object {
  return {
    ifindex,
    ifname,
    master,
    address: `02:00:00:00:00:0${ifindex}`,
    linkinfo: { info_slave_kind: kind },
  }
}

const BRIDGE = Uint8Array.of(2, 0, 0, 0, 0, 3)

test('findTargets replaces a port by its bridge, and reports the address of the bridge to the datapath', () => {
  const rows: readonly (readonly [
    interfaces: string,
    endpoints: readonly string[],
    routed: readonly string[],
    ports: readonly string[],
    indexes: readonly (readonly [index: number, isPort: boolean])[],
    reason: string,
  ])[] = [
    ['[lxc6]', ['veth4'], ['lxc6'], ['lxc6'], [[6, false]], 'those named, not those of endpoints'],
    ['[]', ['lxc6'], ['lxc6'], ['lxc6'], [[6, false]], 'none named: those of endpoints'],
    ['[]', ['veth4'], ['br0', 'veth4'], ['veth4'], [[4, true]], 'a port'],
    [
      '[br0]',
      [],
      ['br0'],
      ['br0', 'veth4', 'veth5'],
      [
        [3, false],
        [4, true],
        [5, true],
      ],
      'a bridge: all its ports',
    ],
    [
      "['veth*']",
      [],
      ['br0'],
      ['veth4', 'veth5'],
      [
        [4, true],
        [5, true],
      ],
      'a beginning',
    ],
    [
      "['lxc*']",
      [],
      [],
      ['lxc6', 'lxc7', 'lxc8'],
      [
        [6, false],
        [8, false],
      ],
      'a bond takes the packets of its part',
    ],
    ['[]', ['soon1'], ['soon1'], ['soon1'], [], 'not there yet'],
    ['[br7]', [], ['br7'], ['br7'], [], 'a bridge that does not exist yet is none'],
    ['[lo]', [], [], [], [], 'the loopback is for mode redirect'],
    ['[]', ['lo', 'we"ird'], [], [], [], 'nor interfaces that no rule can name'],
    [
      "['*']",
      [],
      ['br0'],
      ['br0', 'eth0', 'lxc6', 'lxc7', 'lxc8', 'tun9', 'veth4', 'veth5'],
      [
        [2, false],
        [3, false],
        [4, true],
        [5, true],
        [6, false],
        [8, false],
        [9, false],
      ],
      'every one but lo',
    ],
  ]
  for (const [interfaces, endpoints, routed, ports, indexes, reason] of rows) {
    const plan = mkPlan({ listeners: `{ port: 9, mode: tproxy, interfaces: ${interfaces} }` })
    assert.deepEqual(
      findTargets(plan, endpoints, LINKS),
      {
        // In these rows every named bridge exists.
        parts: [{ routed, bridges: routed.filter((name) => name === 'br0'), ports }],
        interfaces: indexes.map(([ifindex, isPort]) => ({
          ifindex,
          families: { 4: true, 6: true },
          ...(isPort ? { bridgeMac: BRIDGE } : {}),
        })),
      },
      reason,
    )
  }
})

test('findTargets reports to the datapath only families that have rules', () => {
  const plan = mkPlan({
    listeners: '{ address: 127.0.0.1, port: 9, mode: tproxy, interfaces: [lxc6] }',
  })
  const [found] = findTargets(plan, [], LINKS).interfaces
  assert.deepEqual(found, { ifindex: 6, families: { 4: true, 6: false } })
})
