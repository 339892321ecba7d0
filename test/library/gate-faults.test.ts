// Changes and configurations that a gate refuses as a whole, with the path of each fault.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createGate, UnavailableError } from '../../src/library.ts'
import { config, job, policyObject, withGate, faultsOf } from '../support/nodes/library-gate.ts'

test('Gate.change rejects with the path of the fault, and changes nothing', async () => {
  await withGate({ endpoints: [job] }, async (gate, ask) => {
    await gate.setPolicy('web', policyObject('web', 'a.example'))
    const before = gate.status()
    const bad: unknown = { ...policyObject('bad', 'b.example'), spec: { egress: [{ toFQDN: [] }] } }
    const rows: readonly (readonly [change: unknown, faults: readonly string[]])[] = [
      [
        { policies: { bad }, endpoints: [{ ...job, addresses: ['127.0.0.2'] }] },
        [
          'policy bad: unknown field spec.egress[0].toFQDN; did you mean "toFQDNs"?',
          'policy bad: spec: found no endpointSelector, expected one; `{}` selects every endpoint',
        ],
      ],
      [
        { endpoints: [{ ...job, name: 'x' }] },
        [/^endpoint x: x: found 127.0.0.1\/32, which overlaps job's/.source],
      ],
      [{ endpoint: [job] }, ['change: unknown key endpoint; did you mean "endpoints"?']],
      [{ endpoints: job }, ['change: endpoints: found a mapping, expected a list']],
      [{ removeEndpoints: 'job' }, ['change: removeEndpoints: found "job", expected a list']],
      [{ endpoints: [job, job] }, ['change: endpoints[1]: found the name job twice']],
      [
        { policies: { web: undefined } },
        [
          'policy web: found nothing, expected a policy: a mapping with apiVersion, kind, metadata and spec',
        ],
      ],
    ]
    for (const [change, faults] of rows) {
      const found = await faultsOf(gate.change(change as never))
      assert.equal(found.length, faults.length, found.join('\n'))
      found.forEach((each, i) => {
        const want = faults[i] ?? ''
        if (want.startsWith('^')) assert.match(each, new RegExp(want))
        else assert.equal(each, want)
      })
      const { policyRevision, datapath } = gate.status()
      assert.deepEqual([policyRevision, datapath], [before.policyRevision, before.datapath])
    }
    assert.deepEqual([await ask('a.example'), await ask('b.example')], ['NOERROR', 'REFUSED 15'])
  })
})

test('createGate rejects with every fault of its config, and leaves nothing behind', async () => {
  const rows: readonly (readonly [options: unknown, faults: readonly string[]])[] = [
    [
      { config: { listeners: [{ port: 'x' }], dns: { 'min-ttl': 5 } } },
      [
        'config: dns.min-ttl: found 5, expected a duration: a whole number and ms, s, m, h or d, such as 30s',
        'config: listeners[0].port: found "x", expected a whole number from 0 to 65535',
      ],
    ],
    [{ config: { datapth: {} } }, ['config: unknown key datapth; did you mean "datapath"?']],
    [{ config: [] }, ['config: found an empty list, expected a mapping']],
    [{ config: { policies: [] } }, ['config: policies: found an empty list, expected a mapping']],
    [{ polices: {} }, ['options: unknown key polices; did you mean "policies"?']],
    [{ log: true }, ['options: log: found true, expected a function']],
    [{ policies: { a: 'kind: [' } }, ['policy a:1:8: ']],
    [{ endpoints: [{ name: 'a' }] }, ['endpoint a: found no address, expected at least one']],
  ]
  for (const [options, faults] of rows) {
    const found = await faultsOf(createGate(options as never))
    assert.equal(found.length, faults.length, found.join('\n'))
    const sorted = [...found].sort()
    faults.forEach((want, i) =>
      assert.ok(sorted[i]?.startsWith(want), `${sorted[i]} is not ${want}`),
    )
  }
  await withGate({}, async (gate) => {
    const port = Number(gate.addresses[0]?.split(':')[1])
    const taken = createGate({ config: config({ listeners: [{ address: '127.0.0.1', port }] }) })
    await assert.rejects(taken, (error) => error instanceof UnavailableError)
  })
})
