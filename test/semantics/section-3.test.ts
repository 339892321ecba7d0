// docs/spec/semantics 3, labels, prefixes, identities: every row of its table and every rule around it, for IPv4 and IPv6.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ConfigFacts } from '../../src/enforcement/config-facts.ts'
import { OWNER_RESOURCE } from '../../src/ipcache/facts.ts'
import { mkEndpoint, mkPolicies, Node, prefixOf, type NodeOptions } from '../support/nodes/node.ts'

type Family = 4 | 6
const FAMILIES: readonly Family[] = [4, 6]

/** The address or prefix of the row's family. */
function pick(family: Family, v4: string, v6: string): string {
  return family === 4 ? v4 : v6
}

function world(family: Family): readonly string[] {
  return ['reserved:world', `reserved:world-ipv${family}`]
}

function mkNode(options: NodeOptions = {}): Node {
  const node = new Node(options)
  node.setEndpoints([mkEndpoint('a', ['10.200.0.1', 'fd00:200::1'])])
  return node
}

function fqdns(...patterns: readonly string[]): string {
  const peers = patterns.map(
    (text) => `{ ${text.includes('*') ? 'matchPattern' : 'matchName'}: "${text}" }`,
  )
  return `egress: [ { toFQDNs: [ ${peers.join(', ')} ] } ]`
}

function learn(node: Node, name: string, ...addresses: readonly string[]): void {
  node.learn(node.endpoint('a').id, name, addresses)
}

function addResource(
  node: Node,
  prefix: string,
  labels: readonly string[],
  more: readonly (readonly [string, readonly string[]])[] = [],
): void {
  const facts = new ConfigFacts({ core: node.core })
  facts.apply(
    [[prefix, labels] as const, ...more].map(([text, texts]) => ({
      prefix: prefixOf(text),
      kind: OWNER_RESOURCE,
      owner: `resource ${text}`,
      labels: texts,
    })),
  )
  node.settle()
}

for (const family of FAMILIES) {
  const at = (n: number) => pick(family, `192.0.2.${n}`, `2001:db8::${n}`)
  const label = (text: string) => [...[text].flat(), ...world(family)].sort()

  test(`Table, IPv${family}: *.cilium.io, www.cilium.io selected; www -> 1, 2; dev -> 2, 3: 1, 2 both labels, one identity; 3 fqdn:*.cilium.io, another`, () => {
    const node = mkNode()
    node.setPolicies(mkPolicies(fqdns('*.cilium.io', 'www.cilium.io')))
    learn(node, 'www.cilium.io', at(1), at(2))
    learn(node, 'dev.cilium.io', at(2), at(3))
    const both = ['fqdn:*.cilium.io', 'fqdn:www.cilium.io', ...world(family)]
    assert.deepEqual([node.labelsOf(at(1)), node.labelsOf(at(2))], [both, both])
    assert.equal(node.identityOf(at(1)), node.identityOf(at(2)))
    assert.deepEqual(node.labelsOf(at(3)), label('fqdn:*.cilium.io'))
    assert.notEqual(node.identityOf(at(3)), node.identityOf(at(1)))
  })

  test(`Table, IPv${family}: foo.com -> 1, 2 and bar.com -> 2, 3, each selected: three identities; address 2 has both labels`, () => {
    const node = mkNode()
    node.setPolicies(mkPolicies(fqdns('foo.com', 'bar.com')))
    learn(node, 'foo.com', at(1), at(2))
    learn(node, 'bar.com', at(2), at(3))
    assert.equal(new Set([1, 2, 3].map((n) => node.identityOf(at(n)))).size, 3)
    assert.deepEqual(node.labelsOf(at(2)), ['fqdn:bar.com', 'fqdn:foo.com', ...world(family)])
  })

  test(`Table, IPv${family}: *.cilium.io -> 52.58.254.253; CIDR 52.58.254.0/24 selected: the host carries both labels; both selectors select it`, () => {
    const [host, cidr] = [
      pick(family, '52.58.254.253', '2001:db8::253'),
      pick(family, '52.58.254.0/24', '2001:db8::/32'),
    ]
    const node = mkNode()
    node.setPolicies(mkPolicies(fqdns('*.cilium.io'), `egress: [ { toCIDR: [ "${cidr}" ] } ]`))
    learn(node, 'www.cilium.io', host)
    assert.deepEqual(node.labelsOf(host), [`cidr:${cidr}`, 'fqdn:*.cilium.io', ...world(family)])
    const id = node.identityOf(host)
    assert.ok(node.selectedBy('*.cilium.io').includes(id))
    assert.ok(node.selectedBy(cidr).includes(id))
  })

  test(`Table, IPv${family}: *.com, *.io; ebpf.com and cilium.io -> 1.2.3.4; *.io is removed: keeps fqdn:*.com, new identity, no gap`, () => {
    const host = pick(family, '1.2.3.4', '2001:db8::1:2:3:4')
    const node = mkNode()
    const [com, io] = mkPolicies(fqdns('*.com'), fqdns('*.io'))
    assert.ok(com !== undefined && io !== undefined)
    node.setPolicies([com, io])
    learn(node, 'ebpf.com', host)
    learn(node, 'cilium.io', host)
    const before = node.identityOf(host)
    assert.deepEqual(node.labelsOf(host), ['fqdn:*.com', 'fqdn:*.io', ...world(family)])
    node.recorder.onWrite = () => assert.equal(node.verdict('a', host), 'allow', 'no gap')
    node.setPolicies([com])
    assert.deepEqual(node.labelsOf(host), label('fqdn:*.com'))
    assert.notEqual(node.identityOf(host), before)
  })

  test(`Table, IPv${family}: 10.0.0.0/8 and 10.1.0.0/16 selected by two policies: two identities; the longer carries only its own; selector /8 selects both`, () => {
    const [wide, narrow] = [
      pick(family, '10.0.0.0/8', 'fd00::/8'),
      pick(family, '10.1.0.0/16', 'fd01::/16'),
    ]
    const node = mkNode()
    node.setPolicies(
      mkPolicies(
        `egress: [ { toCIDR: [ "${wide}" ] } ]`,
        `egress: [ { toCIDR: [ "${narrow}" ] } ]`,
      ),
    )
    assert.deepEqual(node.labelsOf(wide), label(`cidr:${wide}`))
    assert.deepEqual(node.labelsOf(narrow), label(`cidr:${narrow}`))
    const both = [node.identityOf(wide), node.identityOf(narrow)].sort((a, b) => a - b)
    assert.deepEqual(node.selectedBy(wide), both)
    assert.deepEqual(node.selectedBy(narrow), [node.identityOf(narrow)])
  })

  test(`Table, IPv${family}: resource 192.0.2.0/24 with k8s:foo=bar, and a name -> 192.0.2.2: the host inherits k8s:foo=bar; with k8s:foo=no of its own it keeps its own`, () => {
    const prefix = pick(family, '192.0.2.0/24', '2001:db8::/32')
    const node = mkNode()
    node.setPolicies(mkPolicies(fqdns('*.x')))
    addResource(node, prefix, ['k8s:foo=bar'], [[at(3), ['k8s:foo=no']]])
    learn(node, 'a.x', at(2), at(3))
    assert.deepEqual(node.labelsOf(at(2)), ['fqdn:*.x', 'k8s:foo=bar'])
    assert.deepEqual(node.labelsOf(at(3)), ['fqdn:*.x', 'k8s:foo=no'])
  })

  test(`Table, IPv${family}: endpoint 10.1.2.3, 10.0.0.0/8 selected: the endpoint's own labels only`, () => {
    const [host, cidr] = [
      pick(family, '10.1.2.3', 'fd00::3'),
      pick(family, '10.0.0.0/8', 'fd00::/8'),
    ]
    const node = mkNode()
    node.setEndpoints([
      mkEndpoint('a', ['10.200.0.1', 'fd00:200::1']),
      mkEndpoint('b', [host], ['k8s:app=b']),
    ])
    node.setPolicies(mkPolicies(`egress: [ { toCIDR: [ "${cidr}" ] } ]`))
    assert.deepEqual(node.labelsOf(host), ['k8s:app=b'])
    assert.equal(node.verdict('a', host), 'deny', 'a CIDR does not select an endpoint')
  })

  test(`Table, IPv${family}: 10.0.0.0/8 except 10.96.0.0/12; a name -> 10.96.1.1: carries the exception's label; not selected by that rule, selected by its FQDN selectors`, () => {
    const [cidr, except, host] = [
      pick(family, '10.0.0.0/8', 'fd00::/8'),
      pick(family, '10.96.0.0/12', 'fd60::/12'),
      pick(family, '10.96.1.1', 'fd60::1'),
    ]
    const node = mkNode()
    node.setPolicies(
      mkPolicies(
        fqdns('*.x'),
        `egress: [ { toCIDRSet: [ { cidr: "${cidr}", except: [ "${except}" ] } ] } ]`,
      ),
    )
    learn(node, 'a.x', host)
    assert.deepEqual(node.labelsOf(host), [`cidr:${except}`, 'fqdn:*.x', ...world(family)])
    const id = node.identityOf(host)
    assert.ok(!node.selectedBy(cidr, [except]).includes(id))
    assert.ok(node.selectedBy('*.x').includes(id))
    assert.equal(node.verdict('a', host), 'allow')
    assert.equal(
      node.verdict('a', pick(family, '10.96.1.2', 'fd60::2')),
      'deny',
      'no name taught it',
    )
    assert.equal(node.verdict('a', pick(family, '10.1.1.1', 'fd01::1')), 'allow')
  })

  test(`Selectors with the same canonical text are one, IPv${family}`, () => {
    const node = mkNode()
    node.setPolicies(
      mkPolicies(
        'egress: [ { toFQDNs: [ { matchName: WWW.cilium.io. }, { matchPattern: www.Cilium.io } ] } ]',
      ),
    )
    assert.deepEqual(
      [...node.core.selectors].map(({ text }) => text),
      ['www.cilium.io'],
    )
    learn(node, 'www.cilium.io', at(1))
    assert.deepEqual(node.labelsOf(at(1)), label('fqdn:www.cilium.io'))
  })

  test(`A changed prefix recomputes every prefix inside it, IPv${family}`, () => {
    const [wide, host] = [pick(family, '192.0.2.0/24', '2001:db8::/32'), at(1)]
    const node = mkNode()
    const [names, cidr] = mkPolicies(fqdns('*.x'), `egress: [ { toCIDR: [ "${wide}" ] } ]`)
    assert.ok(names !== undefined && cidr !== undefined)
    node.setPolicies([names])
    learn(node, 'a.x', host)
    const before = node.identityOf(host)
    node.setPolicies([names, cidr])
    assert.deepEqual(node.labelsOf(host), [`cidr:${wide}`, 'fqdn:*.x', ...world(family)])
    node.setPolicies([names])
    assert.deepEqual(node.labelsOf(host), label('fqdn:*.x'))
    assert.equal(node.identityOf(host), before, 'the same set, the same number')
  })
}

test('IPv4-mapped IPv6 is IPv4', () => {
  const node = mkNode()
  node.setPolicies(mkPolicies('egress: [ { toCIDR: [ "::ffff:192.0.2.0/120" ] } ]'))
  assert.deepEqual(node.labelsOf('192.0.2.0/24'), ['cidr:192.0.2.0/24', ...world(4)])
})

test('Addresses of the node have identity 1, and those of no prefix that of the world of their family', () => {
  const node = new Node({ nodeAddresses: ['192.0.2.9', '2001:db8::9'] })
  node.setEndpoints([mkEndpoint('a', ['10.200.0.1'])])
  node.setPolicies(mkPolicies('egress: [ { toCIDR: [ 192.0.2.0/24 ] }, { toEntities: [ none ] } ]'))
  assert.deepEqual([node.identityOf('192.0.2.9'), node.identityOf('2001:db8::9')], [1, 1])
  assert.deepEqual(node.labelsOf('192.0.2.9'), ['reserved:host'])
  assert.deepEqual(node.recorder.placeOf(prefixOf('203.0.113.1')), { identity: 9, addressClass: 9 })
  assert.deepEqual(node.recorder.placeOf(prefixOf('2001:db8::1')), {
    identity: 10,
    addressClass: 10,
  })
})

test('The same key from two owners of one prefix: the earlier kind, then the smaller owner text wins, and it is counted', () => {
  const node = mkNode()
  node.setEndpoints([
    mkEndpoint('a', ['10.200.0.1']),
    mkEndpoint('b', ['192.0.2.1'], ['k8s:x=endpoint']),
  ])
  addResource(node, '192.0.2.1', ['k8s:x=resource', 'k8s:y=resource'])
  assert.deepEqual(node.labelsOf('192.0.2.1'), ['k8s:x=endpoint', 'k8s:y=resource'])
  assert.ok(node.core.ipcache.conflicts > 0)
})

test('Numbers are from 1 << 24 upwards, and a label set keeps its number while referenced and for the reuse delay', () => {
  const node = mkNode({ staticIdentities: 0 })
  node.setPolicies(mkPolicies(fqdns('*.x')))
  learn(node, 'a.x', '192.0.2.1')
  const id = node.identityOf('192.0.2.1')
  assert.ok(id >= 2 ** 24 && id < 2 ** 25)
  node.core.names.forget(1)
  node.core.committer.commit()
  node.core.committer.commit()
  node.clock.advance(599_000)
  node.core.allocator.sweep()
  learn(node, 'b.x', '192.0.2.7')
  assert.equal(node.identityOf('192.0.2.7'), id)
})
