// A configuration over a bound is refused completely, with the bound's key in the message.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { boundFaults, configuredPrefixesMax } from '../../src/enforcement/config-bounds.ts'
import { parsePrefix } from '../../src/core/ip.ts'
import { loadPolicies } from '../../src/policy/load/load.ts'

const POLICY = `
apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: { name: p }
spec:
  endpointSelector: { matchLabels: { app: x } }
  egress:
    - toFQDNs: [ { matchName: a.test }, { matchName: b.test } ]
      toPorts: [ { ports: [ { port: "1", endPort: 6, protocol: TCP } ] } ]
    - toCIDRSet: [ { cidr: 10.0.0.0/8, except: [ 10.1.0.0/16 ] } ]
`

function address(text: string): { readonly addresses: ReturnType<typeof prefixesOf> } {
  return { addresses: prefixesOf(text) }
}

function prefixesOf(text: string) {
  const parsed = parsePrefix(text)
  assert.ok(parsed.kind === 'ok')
  return [parsed.prefix]
}

const { policies } = loadPolicies(POLICY, 'p.yaml')
const configured = {
  policies,
  endpoints: [{ name: 'e', labels: ['external:app=x'], ...address('192.0.2.1') }],
  resources: [address('192.0.2.2')],
}
/** Three selectors, one endpoint, one resource; 2 prefixes of policy and 2 addresses; entries: 4 + 4 + 1. */
const FITS = { selectors: 3, endpoints: 1, resources: 1, prefixes: 4, policyEntries: 9 }
const COMPILE = { defaultEgress: 'deny', withoutDnsRules: 'allow' } as const

describe('boundFaults', () => {
  it('finds nothing if everything just fits', () => {
    assert.equal(policies.length, 1)
    assert.deepEqual(boundFaults(configured, FITS, COMPILE), [])
  })

  const rows: readonly (readonly [
    reason: string,
    bounds: Partial<typeof FITS>,
    message: RegExp,
  ])[] = [
    ['a selector too many', { selectors: 2 }, /^found 3 selectors .* limits\.selectors allows 2$/],
    ['an endpoint too many', { endpoints: 0 }, /^found 1 endpoints, limits\.endpoints allows 0$/],
    ['a resource too many', { resources: 0 }, /^found 1 resources, limits\.resources allows 0$/],
    ['a prefix too many, exceptions count', { prefixes: 3 }, /^found 4 addresses and prefixes/],
    [
      'a port range with more entries than a map has',
      { policyEntries: 8 },
      /^endpoint e needs 9 policy entries, limits\.policy-entries allows 8$/,
    ],
  ]
  for (const [reason, bounds, message] of rows) {
    it(`refuses ${reason}, with a place in the policy`, () => {
      const [fault, ...others] = boundFaults(configured, { ...FITS, ...bounds }, COMPILE)
      assert.deepEqual(others, [])
      assert.match(fault?.message ?? '', message)
      assert.equal(fault?.position.file, 'p.yaml')
    })
  }

  it('configuredPrefixesMax grows with the bounds of selectors and resources', () => {
    assert.equal(configuredPrefixesMax({ selectors: 10, resources: 5 }), 25)
  })
})
