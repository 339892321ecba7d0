// Two forms of a policy have one meaning: a random NetworkPolicy and the CiliumNetworkPolicy that a person would write for it, and an
// allow-list and its policy. Rules are compared as values. NAMEGATE_SEED=n replays one run.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatFault } from '../../src/core/errors.ts'
import { loadPolicies } from '../../src/policy/load/load.ts'
import type { Policy } from '../../src/policy/rule.ts'
import { runsOf } from '../support/properties.ts'
import { Random } from '../support/models/random.ts'

const SEED = Number(process.env['NAMEGATE_SEED'] ?? 20_261_122)
const CASES = runsOf(1500)
const LABELS = { app: ['a', 'b'], tier: ['1', '2'] } as const
const NAMESPACES = ['prod', 'ops'] as const

interface Pair {
  /** The text in a NetworkPolicy, and in a CiliumNetworkPolicy. */
  readonly network: object
  readonly cilium: object
}

function labelsOf(random: Random): Readonly<Record<string, string>> {
  const key = random.pick(['app', 'tier'] as const)
  return random.oneIn(4) ? {} : { [key]: random.pick(LABELS[key]) }
}

function randomPeer(random: Random): Pair {
  if (random.oneIn(3)) {
    const block = { cidr: '10.0.0.0/8', ...(random.oneIn(2) ? { except: ['10.1.0.0/16'] } : {}) }
    return { network: { ipBlock: block }, cilium: { toCIDRSet: [block] } }
  }
  const labels = labelsOf(random)
  if (random.oneIn(2)) {
    const cilium = { toEndpoints: [{ matchLabels: labels }] }
    return { network: { podSelector: { matchLabels: labels } }, cilium }
  }
  const namespace = random.pick(NAMESPACES)
  const namespaceSelector = { matchLabels: { 'kubernetes.io/metadata.name': namespace } }
  const matchLabels = { 'k8s:io.kubernetes.pod.namespace': namespace, ...labels }
  return {
    network: { namespaceSelector, podSelector: { matchLabels: labels } },
    cilium: { toEndpoints: [{ matchLabels }] },
  }
}

function randomPorts(random: Random): Pair {
  if (random.oneIn(3)) return { network: {}, cilium: {} }
  const protocol = random.pick(['TCP', 'UDP', 'SCTP'])
  const low = 1 + random.below(60_000)
  const range = random.oneIn(2) ? {} : { endPort: low + random.below(5000) }
  const said = protocol === 'TCP' && random.oneIn(2) ? {} : { protocol }
  if (random.oneIn(6)) {
    return {
      network: { ports: [said] },
      cilium: { toPorts: [{ ports: [{ port: '0', protocol }] }] },
    }
  }
  return {
    network: { ports: [{ port: low, ...range, ...said }] },
    cilium: { toPorts: [{ ports: [{ port: String(low), ...range, protocol }] }] },
  }
}

/** A rule with one peer or none. In a NetworkPolicy, none means everything. */
function randomRule(random: Random): Pair {
  const ports = randomPorts(random)
  if (random.oneIn(5)) {
    return { network: ports.network, cilium: { toEntities: ['all'], ...ports.cilium } }
  }
  const peer = randomPeer(random)
  return {
    network: { to: [peer.network], ...ports.network },
    cilium: { ...peer.cilium, ...ports.cilium },
  }
}

function meaningOf(document: object): unknown {
  const { policies, faults } = loadPolicies(JSON.stringify(document), 'p.yaml')
  assert.deepEqual(faults.map(formatFault), [], JSON.stringify(document))
  return policies.map(plain)
}

/** The policy without its place and form. */
function plain({ name, namespace, selector, rules, defaultDeny }: Policy): unknown {
  const what = rules.map(({ action, peers, toPorts }) => ({ action, peers, toPorts }))
  return { name, namespace, selector, rules: what, defaultDeny }
}

test('loadPolicies reads a NetworkPolicy and its CiliumNetworkPolicy with one meaning', () => {
  const random = new Random(SEED)
  for (let n = 0; n < CASES; n++) {
    const metadata = { name: 'p', namespace: random.pick(NAMESPACES) }
    const rules = Array.from({ length: 1 + random.below(3) }, () => randomRule(random))
    const matchLabels = labelsOf(random)
    const network = {
      apiVersion: 'networking.k8s.io/v1',
      kind: 'NetworkPolicy',
      metadata,
      spec: {
        podSelector: { matchLabels },
        policyTypes: ['Egress'],
        egress: rules.map((rule) => rule.network),
      },
    }
    const cilium = {
      apiVersion: 'cilium.io/v2',
      kind: 'CiliumNetworkPolicy',
      metadata,
      spec: {
        endpointSelector: { matchLabels: matchLabels },
        egress: rules.map((rule) => rule.cilium),
      },
    }
    assert.deepEqual(meaningOf(network), meaningOf(cilium), `seed ${SEED}, case ${n}`)
  }
})

test('loadPolicies reads an allow-list and its policy with one meaning', () => {
  const random = new Random(SEED)
  for (let n = 0; n < CASES; n++) {
    const entries = Array.from({ length: 1 + random.below(4) }, () => {
      const pattern = random.pick(['a.x', '*.x', '**.b.x', 'c*.y', '*'])
      const port = random.oneIn(3) ? undefined : 1 + random.below(65_535)
      const protocol = random.oneIn(2) ? undefined : random.pick(['TCP', 'UDP'])
      return { pattern, port, protocol: port === undefined ? undefined : protocol }
    })
    const lines = entries.map(({ pattern, port, protocol }) => {
      const end = port === undefined ? '' : `:${port}`
      return `${pattern}${end}${protocol === undefined ? '' : `/${protocol}`}`
    })
    const { policies, faults } = loadPolicies(`${lines.join('\n')}\n`, 'p.allow')
    assert.deepEqual(faults, [])
    const dns = entries.map(({ pattern }) => ({ matchPattern: pattern }))
    const asked = { toPorts: [{ ports: [{ port: '53' }], rules: { dns } }] }
    const reached = entries.map(({ pattern, port = 0, protocol }) => {
      const protocols = protocol === undefined ? ['TCP', 'UDP'] : [protocol]
      const ports = protocols.map((each) => ({ port: String(port), protocol: each }))
      return { toFQDNs: [{ matchPattern: pattern }], toPorts: [{ ports }] }
    })
    const document = {
      apiVersion: 'cilium.io/v2',
      kind: 'CiliumClusterwideNetworkPolicy',
      metadata: { name: 'p' },
      spec: { endpointSelector: {}, egress: [asked, ...reached] },
    }
    assert.deepEqual(policies.map(plain), meaningOf(document), lines.join('\n'))
  }
})
