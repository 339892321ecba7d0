import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EXEC_LIMITS, execConfig } from '../../src/config/exec-config.ts'
import { configFromObject } from '../../src/config/load.ts'

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
        },
        policies: { paths: policyFile === undefined ? [] : [policyFile], watch: false },
        endpoints: { files: [] },
        datapath: { kind: 'nftables', 'adopt-existing': '0ms' },
        limits: EXEC_LIMITS,
      },
      'exec',
    )
    const config = execConfig({ families: [4, 6], policyFile, graceMs: 90_000 })
    // The one place that differs: a fault about the path names the option.
    const paths = config.policies.paths.map((each) => ({
      ...each,
      position: { ...each.position, file: 'exec' },
    }))
    assert.deepEqual({ ...config, policies: { ...config.policies, paths } }, checked)
  })
}
