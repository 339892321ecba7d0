// The first start of a node while the API server starts too. For some seconds such a server does not know the kinds of CRDs, and refuses what
// rights allow. No pod is in force before the policies that select it.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { configFromObject } from '../../src/config/load.ts'
import { SILENT } from '../../src/telemetry/silent.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { ApiModel } from '../support/kubernetes/api-model.ts'
import { MemoryApi } from '../support/kubernetes/memory-api.ts'
import { modelCluster } from '../support/kubernetes/model-cluster.ts'

const RESOURCE = 'ciliumnetworkpolicies'
/** The kinds that a cluster does not have by itself. */
const OTHERS = ['ciliumclusterwidenetworkpolicies', 'clusternetworkpolicies']

const ROWS: readonly (readonly [
  why: string,
  begin: (model: ApiModel) => void,
  end: (model: ApiModel) => void,
])[] = [
  [
    'it does not know the definitions',
    (model) => void model.defined.delete(RESOURCE),
    (model) => void model.defined.add(RESOURCE),
  ],
  [
    'it does not know the rules of RBAC',
    (model) => {
      for (const verb of ['list', 'watch']) model.denied.add(`${verb} ${RESOURCE}`)
      model.denied.add('get /readyz')
    },
    (model) => model.denied.clear(),
  ],
]
for (const [why, begin, end] of ROWS) {
  for (const hasWatchList of [false, true]) {
    test(`a server that starts opens no pod: ${why}; watch-list ${hasWatchList}`, () => {
      const clock = new FakeClock()
      const model = new ApiModel({ hasWatchList })
      for (const each of OTHERS) model.defined.delete(each)
      model.put('namespaces', { metadata: { name: 'shop' } })
      model.put(RESOURCE, {
        metadata: { name: 'closed', namespace: 'shop' },
        spec: { endpointSelector: {}, egress: [{ toCIDR: ['192.0.2.0/24'] }] },
      })
      model.put('pods', {
        metadata: { name: 'web', namespace: 'shop' },
        spec: { nodeName: 'n', containers: [] },
        status: { phase: 'Running', podIP: '10.0.0.1' },
      })
      model.isStarting = true
      begin(model)
      const inForce: string[] = []
      const cluster = modelCluster({
        config: configFromObject({ kubernetes: { node: 'n' } }),
        clock,
        log: SILENT,
        api: new MemoryApi(model, clock),
        keeper: undefined,
        onChange: ({ policies, endpoints }) => {
          inForce.push(...policies.keys(), ...endpoints.keys())
          return false
        },
      })
      cluster.start()
      clock.advance(5000)
      assert.deepEqual(inForce, [])
      assert.match(cluster.notReady.join(), /ciliumnetworkpolicies of the cluster are not known/)
      end(model)
      model.isStarting = false
      clock.advance(60_000)
      assert.deepEqual(inForce, [
        'kubernetes:CiliumNetworkPolicy/shop/closed',
        'kubernetes:Pod/shop/web',
      ])
      assert.deepEqual(cluster.notReady, [])
      cluster.stop()
    })
  }
}
