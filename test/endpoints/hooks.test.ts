// An interface or cgroup belongs to one endpoint: a second endpoint with the same one is a fault.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatFault } from '../../src/core/errors.ts'
import { parseEndpoints } from '../../src/endpoints/file.ts'

test('parseEndpoints refuses an interface or cgroup that another endpoint has', () => {
  const { endpoints, faults } = parseEndpoints(
    `endpoints:
  - { name: a, addresses: [192.0.2.1], interface: lxc1 }
  - { name: b, addresses: [192.0.2.2], interface: lxc1, hook: egress }
  - { name: c, cgroup: shop.slice }
  - { name: d, cgroup: /shop.slice/ }
  - { name: e, addresses: [192.0.2.3] }
  - { name: f, addresses: [192.0.2.4] }
`,
    'e',
  )
  assert.deepEqual(endpoints, [])
  assert.deepEqual(faults.map(formatFault), [
    "e:3:5: b: found interface lxc1, which is a's, first at e:2",
    "e:5:5: d: found cgroup shop.slice, which is c's, first at e:4",
  ])
})
