// Which flows are adopted at the start, as the endpoint's own hook sees them.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  AdoptionControl,
  type AdoptionControlOptions,
  type TrackedFlow,
} from '../../src/enforcement/adoption-control.ts'
import { endpointId, generation } from '../../src/core/ids.ts'
import { formatAddress, type Family } from '../../src/core/ip.ts'
import { TCP, UDP } from '../../src/core/protocol.ts'
import type { Adoption } from '../../src/datapath/adoption.ts'
import type { Endpoint, EndpointHook } from '../../src/endpoints/registry.ts'
import { EndpointControl } from '../../src/enforcement/endpoint-control.ts'
import { mkEndpoint, Node, prefixOf } from '../support/nodes/node.ts'

const PASS_MS = 600_000
const NODE_ADDRESS = '192.0.2.1'

/** `FROM:PORT>TO:PORT`, and the tuple of replies if it is not the reverse. */
function flow(began: string, replied?: string, protocol = TCP): TrackedFlow {
  const tuple = (text: string) => {
    const [from = '', to = ''] = text.split('>')
    const [source, sourcePort] = place(from)
    const [target, targetPort] = place(to)
    return { source, sourcePort, target, targetPort }
  }
  const family: Family = began.startsWith('[') ? 6 : 4
  const reply = replied ?? began.split('>').toReversed().join('>')
  return { family, protocol, original: tuple(began), reply: tuple(reply) }
}

function place(text: string): readonly [octets: Uint8Array, port: number] {
  const at = text.lastIndexOf(':')
  return [prefixOf(text.slice(0, at).replace(/[[\]]/g, '')).octets, Number(text.slice(at + 1))]
}

function endpoint(hook: EndpointHook, ...addresses: readonly string[]): Endpoint {
  const [id, own] = [endpointId(7), generation(3)]
  const prefixes = addresses.map(prefixOf)
  return { id, generation: own, name: 'e', addresses: prefixes, labels: [], hook, audit: false }
}

const VETH: EndpointHook = { kind: 'interface', name: 'lxc1', side: 'ingress' }
const INSIDE: EndpointHook = { kind: 'interface', name: 'eth0', side: 'egress' }
const CGROUP: EndpointHook = { kind: 'cgroup', path: 'a.slice' }

/** A datapath that adopts every flow. */
function into(asked: Adoption[]): AdoptionControlOptions['datapath'] {
  const adopt = (adoption: Adoption): number => asked.push(adoption) && adoption.flows.length
  return { adoption: { adopt, list: () => [] } }
}

function adopted(target: Endpoint, flows: readonly TrackedFlow[]): readonly string[] {
  const asked: Adoption[] = []
  const control = new AdoptionControl({
    datapath: into(asked),
    passMs: PASS_MS,
    nodeAddresses: [prefixOf(NODE_ADDRESS)],
    listFlows: (visit) => {
      for (const each of flows) visit(each)
      return 0
    },
  })
  control.adopt(target)
  const [adoption] = asked
  assert.deepEqual([adoption?.endpoint, adoption?.generation], [7, 3])
  assert.deepEqual([adoption?.passMs, adoption?.learnMs], [PASS_MS, 60_000])
  return (adoption?.flows ?? []).map(({ family, local, localPort, peer, peerPort }) => {
    return `${formatAddress(family, local)}:${localPort} ${formatAddress(family, peer)}:${peerPort}`
  })
}

test("AdoptionControl lists a flow for the endpoint with its address, as the endpoint's hook sees it", () => {
  const rows: readonly (readonly [Endpoint, TrackedFlow, readonly string[], string])[] = [
    [
      endpoint(VETH, '10.0.1.5'),
      flow('10.0.1.5:4000>198.51.100.9:443'),
      ['10.0.1.5:4000 198.51.100.9:443'],
      'the endpoint began the flow',
    ],
    [
      endpoint(VETH, '10.0.1.5'),
      flow('198.51.100.9:4000>10.0.1.5:80'),
      ['10.0.1.5:80 198.51.100.9:4000'],
      'the endpoint answers',
    ],
    [
      endpoint(VETH, '10.0.1.5'),
      flow('10.0.1.5:4000>10.96.0.1:443', '10.0.2.6:8443>192.0.2.1:61000'),
      ['10.0.1.5:4000 10.96.0.1:443'],
      'to a service address, masqueraded: rewritten behind its hook',
    ],
    [
      endpoint(VETH, '10.0.1.5'),
      flow('10.0.2.6:4000>10.96.0.1:443', '10.0.1.5:8443>10.0.2.6:4000'),
      ['10.0.1.5:8443 10.0.2.6:4000'],
      'behind a service address: what reaches it was rewritten',
    ],
    [endpoint(VETH, '10.0.1.5'), flow('10.0.2.6:4000>198.51.100.9:443'), [], "another's"],
    [
      endpoint(VETH, '10.0.1.0/24', 'fd00::/64'),
      flow('[fd00::5]:4000>[2001:db8::9]:443'),
      ['fd00::5:4000 2001:db8::9:443'],
      'inside a prefix of it',
    ],
    [
      endpoint(VETH, '10.0.1.5'),
      flow('10.0.1.5:4000>198.51.100.9:443', undefined, UDP),
      ['10.0.1.5:4000 198.51.100.9:443'],
      'UDP too',
    ],
    [endpoint(VETH, '10.0.1.5'), flow('10.0.1.5:4000>9.9.9.9:53', undefined, UDP), [], 'DNS'],
    [
      endpoint(VETH, '10.0.1.5'),
      flow('10.0.1.5:4000>10.96.0.10:5353', '9.9.9.9:53>10.0.1.5:4000', UDP),
      [],
      'DNS behind a service address',
    ],
    [endpoint(VETH, '10.0.1.5'), flow('10.0.1.5:0>9.9.9.9:0', undefined, 1), [], 'ICMP'],
    [
      endpoint(CGROUP),
      flow('192.0.2.1:4000>198.51.100.9:443'),
      ['192.0.2.1:4000 198.51.100.9:443'],
      'of the host, which cgroups share',
    ],
    [
      endpoint(CGROUP),
      flow('192.0.2.1:4000>10.96.0.1:443', '10.0.2.6:8443>192.0.2.1:4000'),
      ['192.0.2.1:4000 10.0.2.6:8443'],
      'of the host to a service address: rewritten before its hook',
    ],
    [
      endpoint(CGROUP),
      flow('10.0.2.6:4000>198.51.100.9:443', '198.51.100.9:443>192.0.2.1:61000'),
      [],
      'of a pod behind the address of the host',
    ],
    [
      endpoint(INSIDE, '192.0.2.1'),
      flow('198.51.100.9:4000>192.0.2.1:80'),
      ['192.0.2.1:80 198.51.100.9:4000'],
      'inside the namespace of the workload',
    ],
  ]
  for (const [target, tracked, expected, reason] of rows) {
    assert.deepEqual(adopted(target, [tracked]), expected, reason)
  }
})

test('AdoptionControl adopts nothing with adopt-existing 0s, or after the start', () => {
  for (const passMs of [0, PASS_MS]) {
    const control = new AdoptionControl({
      datapath: { adoption: { adopt: () => assert.fail('no flow is adopted'), list: () => [] } },
      passMs,
      nodeAddresses: [],
      listFlows: () => 0,
    })
    if (passMs > 0) control.end()
    control.adopt(endpoint(VETH, '10.0.1.5'))
  }
})

test('AdoptionControl still asks for TCP without SYN when it cannot list flows', () => {
  const asked: Adoption[] = []
  const control = new AdoptionControl({
    datapath: into(asked),
    passMs: 5000,
    nodeAddresses: [],
    listFlows: () => -1,
  })
  control.adopt(endpoint(VETH, '10.0.1.5'))
  assert.deepEqual(control.faults, [-1])
  assert.deepEqual(
    asked.map(({ flows, learnMs }) => [flows, learnMs]),
    [[[], 5000]],
  )
})

test('EndpointControl reports the unpinned endpoints of the first apply, and no later ones', () => {
  const node = new Node()
  const present: string[] = []
  const [first, second] = [mkEndpoint('first', ['10.0.0.1']), mkEndpoint('second', ['10.0.0.2'])]
  const pinned = mkEndpoint('pinned', ['10.0.0.3'])
  const hookKey = node.core.datapath.hooks.keyOf(pinned.hook) ?? ''
  assert.notEqual(hookKey, '', 'the hook exists')
  const endpoints = new EndpointControl({
    core: node.core,
    policies: node.policies,
    restored: {
      ...node.restored,
      endpoints: [
        {
          id: endpointId(9),
          generation: generation(9),
          enforcing: true,
          audit: false,
          scoped: false,
          sources: [prefixOf('10.9.9.9')],
          hookKey,
        },
      ],
    },
    nodeAddresses: [],
    endpointsMax: 16,
    onPresent: ({ name }) => present.push(name),
  })
  const nowhere = { ...mkEndpoint('nowhere', ['10.0.0.4']), hook: { kind: 'none' as const } }
  endpoints.apply([first, pinned, nowhere])
  assert.deepEqual(present, ['first'])
  endpoints.apply([first, pinned, nowhere, second])
  const moved = { ...first, addresses: [prefixOf('10.0.0.7')] }
  endpoints.apply([moved, pinned, nowhere, second])
  assert.deepEqual(present, ['first'], 'neither a later endpoint nor a new generation')
})
