// CFP-28427 "ToFQDN policy performance improvements": every example and every paragraph headed "Question", by heading. `fqdn:` is our
// source where the text has `dns:` in some places.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { mkEndpoint, mkPolicies, Node, type NodeOptions } from '../support/nodes/node.ts'
import { ConfigFacts } from '../../src/enforcement/config-facts.ts'
import { OWNER_RESOURCE } from '../../src/ipcache/facts.ts'
import { prefixOf } from '../support/nodes/node.ts'

function mkNode(options: NodeOptions = {}, policies: readonly string[] = []): Node {
  const node = new Node(options)
  node.setEndpoints([mkEndpoint('a', ['10.200.0.1', 'fd00:200::1'])])
  node.setPolicies(mkPolicies(...policies))
  return node
}

function fqdn(...patterns: readonly string[]): string {
  return `egress: [ { toFQDNs: [ ${patterns.map((text) => `{ matchPattern: "${text}" }`).join(', ')} ] } ]`
}

function cidr(...prefixes: readonly string[]): string {
  return `egress: [ { toCIDR: [ ${prefixes.map((text) => `"${text}"`).join(', ')} ] } ]`
}

/** The labels of a prefix without those that every address of the world has. */
function own(node: Node, prefix: string): readonly string[] {
  return node.labelsOf(prefix).filter((label) => !label.startsWith('reserved:world'))
}

interface Addresses {
  readonly family: string
  /** The n-th of some addresses. */
  readonly ip: (n: number) => string
  readonly wide: string
  readonly half: string
  readonly inHalf: string
  readonly inWide: string
}

const FAMILIES: readonly Addresses[] = [
  {
    family: 'IPv4',
    ip: (n) => `18.192.231.${n}`,
    wide: '192.0.2.0/24',
    half: '192.0.2.128/25',
    inHalf: '192.0.2.129',
    inWide: '192.0.2.2',
  },
  {
    family: 'IPv6',
    ip: (n) => `2001:db8::${n}`,
    wide: '2001:db8:2::/48',
    half: '2001:db8:2:8000::/49',
    inHalf: '2001:db8:2:8000::1',
    inWide: '2001:db8:2::2',
  },
]

for (const { family, ip, wide, half, inHalf, inWide } of FAMILIES) {
  const teach = (node: Node, name: string, ...addresses: readonly string[]) =>
    node.learn(node.endpoint('a').id, name, addresses)

  test(`"CIDR labels", ${family}: a /24 and a /25 inside it get an identity each, and the label selector of the /24 matches both`, () => {
    const node = mkNode({}, [cidr(wide)])
    const first = node.identityOf(wide)
    assert.ok(first >= 16_777_216)
    assert.deepEqual(node.selectedBy(wide), [first])
    node.setPolicies(mkPolicies(cidr(wide), cidr(half)))
    assert.equal(node.identityOf(wide), first)
    assert.deepEqual(node.selectedBy(wide), [first, node.identityOf(half)])
  })

  test(`"1: CIDR Label down-propagation", ${family}: labels of a prefix flow to those inside it unless overridden; shorter CIDR labels are omitted`, () => {
    const node = mkNode({}, [cidr(wide, `${inWide}/${family === 'IPv4' ? 32 : 128}`)])
    const facts = new ConfigFacts({ core: node.core })
    const fact = (prefix: string, labels: readonly string[]) => ({
      prefix: prefixOf(prefix),
      kind: OWNER_RESOURCE,
      owner: prefix,
      labels,
    })
    facts.apply([
      fact(wide, ['k8s:foo=bar', 'k8s:over=wide']),
      fact(inWide, ['external:kube-apiserver', 'k8s:over=host']),
    ])
    node.settle()
    // A resource neither carries nor inherits cidr: labels (docs/spec/semantics 3); everything else flows down.
    assert.deepEqual(own(node, inWide), ['external:kube-apiserver', 'k8s:foo=bar', 'k8s:over=host'])
    facts.apply([])
    node.settle()
    assert.deepEqual(own(node, inWide), [`cidr:${inWide}/${family === 'IPv4' ? 32 : 128}`])
  })

  test(`"Lifecycle", ${family}: when a prefix is updated or deleted, prefixes contained in it are updated`, () => {
    const node = mkNode({}, [fqdn('*.x'), cidr(wide)])
    teach(node, 'a.x', inHalf)
    assert.deepEqual(own(node, inHalf), [`cidr:${wide}`, 'fqdn:*.x'])
    node.setPolicies(mkPolicies(fqdn('*.x'), cidr(wide, half)))
    assert.deepEqual(own(node, inHalf), [`cidr:${half}`, 'fqdn:*.x'])
    node.setPolicies(mkPolicies(fqdn('*.x')))
    assert.deepEqual(own(node, inHalf), ['fqdn:*.x'])
    assert.deepEqual(node.differences(), [])
  })

  test(`"2: Only generate terminal CIDR labels", ${family}: selector A selects id1 and id2, selector B id2 alone`, () => {
    const node = mkNode({}, [cidr(wide), cidr(half)])
    assert.deepEqual([own(node, wide), own(node, half)], [[`cidr:${wide}`], [`cidr:${half}`]])
    const [id1, id2] = [node.identityOf(wide), node.identityOf(half)]
    assert.deepEqual(
      node.selectedBy(wide),
      [id1, id2].sort((a, b) => a - b),
    )
    assert.deepEqual(node.selectedBy(half), [id2])
  })

  test(`"3: FQDN selector labels", ${family}: www.cilium.io under *.cilium.io: both addresses one label set and identity, only a single write`, () => {
    const node = mkNode({}, [fqdn('*.cilium.io')])
    teach(node, 'www.cilium.io', ip(253))
    node.recorder.takeWrites()
    teach(node, 'www.cilium.io', ip(252))
    const { prefixUpserts, policyUpserts } = node.recorder.takeWrites()
    assert.deepEqual([prefixUpserts, policyUpserts], [1, 0])
    assert.deepEqual(
      [own(node, ip(252)), own(node, ip(253))],
      [['fqdn:*.cilium.io'], ['fqdn:*.cilium.io']],
    )
    assert.equal(node.identityOf(ip(252)), node.identityOf(ip(253)))
  })

  test(`"FQDN identity pre-allocation", ${family}: the identity is there before any address, in selector and policy map`, () => {
    const node = mkNode({}, [fqdn('*.cilium.io')])
    const before = node.selectedBy('*.cilium.io')
    assert.equal(before.length, 2, 'one for each family of the endpoint')
    teach(node, 'www.cilium.io', ip(1))
    assert.ok(before.includes(node.identityOf(ip(1))))
    assert.deepEqual(node.selectedBy('*.cilium.io'), before)
  })

  test(`"Question: Are overlapping FQDN selectors handled correctly?", ${family}`, () => {
    const node = mkNode({}, [fqdn('*.cilium.io', 'www.cilium.io')])
    teach(node, 'www.cilium.io', ip(1), ip(2))
    teach(node, 'dev.cilium.io', ip(2), ip(3))
    const both = ['fqdn:*.cilium.io', 'fqdn:www.cilium.io']
    assert.deepEqual(
      [own(node, ip(1)), own(node, ip(2)), own(node, ip(3))],
      [both, both, ['fqdn:*.cilium.io']],
    )
    const [id1, id2] = [node.identityOf(ip(1)), node.identityOf(ip(3))]
    assert.deepEqual([node.identityOf(ip(2)), id1 === id2], [id1, false])
    assert.ok([id1, id2].every((id) => node.selectedBy('*.cilium.io').includes(id)))
    assert.ok(node.selectedBy('www.cilium.io').includes(id1))
    assert.ok(!node.selectedBy('www.cilium.io').includes(id2))
  })

  test(`"Question: Are overlapping IPs handled correctly?", ${family}`, () => {
    const node = mkNode({}, [fqdn('foo.com'), fqdn('bar.com')])
    teach(node, 'foo.com', ip(1), ip(2))
    teach(node, 'bar.com', ip(2), ip(3))
    assert.deepEqual(
      [own(node, ip(1)), own(node, ip(2)), own(node, ip(3))],
      [['fqdn:foo.com'], ['fqdn:bar.com', 'fqdn:foo.com'], ['fqdn:bar.com']],
    )
    const ids = [1, 2, 3].map((n) => node.identityOf(ip(n)))
    assert.equal(new Set(ids).size, 3)
    const selects = (text: string) => ids.map((id) => node.selectedBy(text).includes(id))
    assert.deepEqual(
      [selects('foo.com'), selects('bar.com')],
      [
        [true, true, false],
        [false, true, true],
      ],
    )
  })

  test(`"Question: Are overlapping ToFQDN and CIDR selectors handed correctly?", ${family}`, () => {
    const node = mkNode({}, [fqdn('*.cilium.io'), cidr(wide)])
    teach(node, 'www.cilium.io', inWide)
    assert.deepEqual(own(node, inWide), [`cidr:${wide}`, 'fqdn:*.cilium.io'])
    for (const id of [node.identityOf(wide), node.identityOf(inWide)])
      assert.ok(node.selectedBy(wide).includes(id))
    assert.ok(node.selectedBy('*.cilium.io').includes(node.identityOf(inWide)))
  })

  test(`"Impact: Identity churn", ${family}: an address that moves to another identity is never without its verdict`, () => {
    const node = mkNode({}, [fqdn('*.cilium.io')])
    teach(node, 'www.cilium.io', ip(1))
    const before = node.identityOf(ip(1))
    node.recorder.onWrite = () => assert.equal(node.verdict('a', ip(1)), 'allow')
    node.setPolicies(mkPolicies(fqdn('*.cilium.io'), fqdn('*', 'www.cilium.io')))
    assert.notEqual(node.identityOf(ip(1)), before)
    node.setPolicies(mkPolicies(fqdn('www.cilium.io')))
    assert.deepEqual(own(node, ip(1)), ['fqdn:www.cilium.io'])
  })

  test(`"Key question: Should all labels propagate downwards?", ${family}: they do here, also through several prefixes`, () => {
    const node = mkNode({}, [fqdn('*.x')])
    const facts = new ConfigFacts({ core: node.core })
    facts.apply([
      {
        prefix: prefixOf(wide),
        kind: OWNER_RESOURCE,
        owner: 'wide',
        labels: ['k8s:a=1', 'k8s:b=1'],
      },
      { prefix: prefixOf(half), kind: OWNER_RESOURCE, owner: 'half', labels: ['k8s:b=2'] },
    ])
    node.settle()
    teach(node, 'a.x', inHalf)
    assert.deepEqual(own(node, inHalf), ['fqdn:*.x', 'k8s:a=1', 'k8s:b=2'])
  })

  test(`"Key question: IP Labels Lifecycle", ${family}: ebpf.com and cilium.io on one address are independent owners`, () => {
    const policies = mkPolicies(fqdn('*.com'), fqdn('*.io'))
    const node = mkNode()
    node.setPolicies(policies)
    teach(node, 'ebpf.com', ip(4))
    teach(node, 'cilium.io', ip(4))
    assert.deepEqual(own(node, ip(4)), ['fqdn:*.com', 'fqdn:*.io'])
    node.setPolicies(policies.slice(0, 1))
    assert.deepEqual(own(node, ip(4)), ['fqdn:*.com'], 'all selectors of cilium.io are removed')
    node.setPolicies(policies)
    assert.deepEqual(
      own(node, ip(4)),
      ['fqdn:*.com', 'fqdn:*.io'],
      'a new selector finds known pairs',
    )
  })

  test(`"Key question: IP Labels Lifecycle", ${family}: labels go with the pairs that expire, and new pairs bring theirs`, () => {
    const node = mkNode({ graceSeconds: 0 }, [fqdn('*.com'), fqdn('*.io')])
    node.learn(node.endpoint('a').id, 'ebpf.com', [ip(4)], 10)
    node.learn(node.endpoint('a').id, 'cilium.io', [ip(4)], 100)
    node.clock.advance(12_000)
    while (!node.core.expiry.step(1));
    node.core.committer.commit()
    assert.deepEqual(own(node, ip(4)), ['fqdn:*.io'])
    node.clock.advance(100_000)
    while (!node.core.expiry.step(1));
    node.core.committer.commit()
    assert.equal(node.rowOf(ip(4)), 0)
    teach(node, 'ebpf.com', ip(4))
    assert.deepEqual(own(node, ip(4)), ['fqdn:*.com'])
  })

  test(`"Key question: identity restoration on restart", ${family}: numbers that the maps carry are never given to another set`, () => {
    const node = mkNode({}, [fqdn('*', 'one.one.one.one'), cidr(wide)])
    teach(node, 'one.one.one.one', ip(1))
    teach(node, 'two.two', ip(2))
    const carried = new Set([...node.recorder.prefixes.values()].map((place) => place.identity))
    const next = mkNode({ recorder: node.recorder }, [cidr(wide), fqdn('*')])
    for (const { id } of next.core.allocator.views()) assert.ok(!carried.has(id), `${id} is fresh`)
    next.learn(next.endpoint('a').id, 'one.one.one.one', [ip(1)])
    assert.deepEqual(own(next, ip(1)), ['fqdn:*'])
    assert.equal(next.verdict('a', ip(1)), 'allow', 'its labels differ, its verdict is the same')
  })

  test(`"Key question: Circuit breakers?", ${family}: a large name takes one identity, and hostile combinations stop at the bound`, () => {
    const many = Array.from({ length: 12 }, (_, i) => `*${i}*.evil`)
    const node = mkNode({ dynamicIdentities: 20 }, [fqdn('s3.big'), fqdn(...many)])
    const { allocator } = node.core
    const inUse = allocator.inUse
    for (let i = 1; i < 250; i++) teach(node, 's3.big', ip(i))
    assert.equal(allocator.inUse, inUse)
    for (let i = 1; i < 2 ** 12; i += 5) {
      const name = many.map((_, bit) => ((i >> bit) & 1 ? `x${bit}` : '')).join('')
      teach(
        node,
        `${name}.evil`,
        family === 'IPv4' ? `18.1.${i >> 8}.${i & 255}` : `2001:db8:1::${i}`,
      )
    }
    assert.equal(allocator.dynamicInUse, 20)
    assert.ok(allocator.fallbacks > 0)
    teach(node, 's3.big', ip(251))
    assert.equal(node.verdict('a', ip(251)), 'allow', 'the large name is not affected')
    assert.deepEqual(node.differences(), [])
  })
}
