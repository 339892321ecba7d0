import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EXEC_LIMITS, execConfig } from '../../src/config/exec-config.ts'
import { configFromObject } from '../../src/config/load.ts'
import { Guard } from '../../src/names/guard.ts'
import { prefixOf } from '../support/nodes/node.ts'

for (const policyFile of [undefined, 'policy.yaml']) {
  test(`execConfig equals what the schema gives for the same values, policy file ${policyFile}`, () => {
    const checked = configFromObject(
      {
        listeners: [
          { address: '127.0.0.1', port: 53 },
          { address: '::1', port: 53 },
        ],
        'default-egress': 'deny',
        dns: {
          'without-rules': policyFile === undefined ? 'deny' : 'allow',
          'grace-after-ttl': '90s',
          'guard-private': true,
          hold: { limit: '2s' },
        },
        policies: { paths: policyFile === undefined ? [] : [policyFile], watch: false },
        endpoints: { files: [] },
        datapath: { kind: 'nftables', 'adopt-existing': '0ms' },
        limits: EXEC_LIMITS,
      },
      'exec',
    )
    const config = execConfig({
      families: [4, 6],
      policyFile,
      graceMs: 90_000,
      denyResponse: 'refused',
      allowedPrefixes: [],
    })
    // Only this value differs: a fault about the path names the option.
    const paths = config.policies.paths.map((each) => ({
      ...each,
      position: { ...each.position, file: 'exec' },
    }))
    assert.deepEqual({ ...config, policies: { ...config.policies, paths } }, checked)
  })
}

test('execConfig protects every private address that --allow does not name', () => {
  const allowedPrefixes = ['10.1.2.3/32', '192.168.0.0/16', '172.16.0.0/13', '0.0.0.0/32'].map(
    prefixOf,
  )
  const { dns } = execConfig({
    families: [4],
    policyFile: undefined,
    graceMs: 0,
    denyResponse: 'refused',
    allowedPrefixes,
  })
  const guard = new Guard({ nodeAddresses: [], protectedPrefixes: dns.protectedPrefixes })
  const rows: readonly (readonly [address: string, guarded: boolean, reason: string])[] = [
    ['10.1.2.3', false, 'named'],
    ['10.1.2.2', true, 'its neighbour'],
    ['10.255.255.255', true, 'end of 10/8'],
    ['192.168.7.7', false, 'inside a named prefix'],
    ['172.16.0.1', false, 'the half that is named'],
    ['172.24.0.1', true, 'the other half'],
    ['100.64.0.1', true, 'shared address space'],
    ['fd00::1', true, 'unique local'],
    ['64:ff9b::a01:202', true, 'NAT64 of a private address'],
    ['64:ff9b::a01:203', false, 'NAT64 of the named address'],
    ['0.0.0.0', true, 'never opened'],
    ['198.51.100.1', false, 'public'],
  ]
  for (const [address, guarded, reason] of rows) {
    const { family, octets } = prefixOf(address)
    assert.equal(guard.isGuarded(family, octets, 0), guarded, `${address}: ${reason}`)
  }
})
