// Exchanges about changes by namegate.

import type { ApiAnswer, ApiLoss } from '../../../src/kubernetes/connection/api-port.ts'
import { begin, HERE, type ConformanceExchange, type Exchanged } from './exchange.ts'
import { at, bodyOf, codeOf, get } from './watch-client.ts'

const NAMES = { apiVersion: 'cilium.io/v2', kind: 'CiliumNetworkPolicy' }
const PATH = `${HERE}/changed`

async function change(
  { api }: Exchanged,
  method: 'POST' | 'PATCH',
  path: string,
  body: object,
): Promise<ApiAnswer | ApiLoss> {
  return await new Promise((done) => api.change(method, path, body, done))
}

export const CHANGES: readonly ConformanceExchange[] = [
  {
    name: 'an object is created once, and a patch of a missing one is 404',
    reason: 'a writer of Events patches after 409, and creates after 404',
    async run(exchanged) {
      await begin(exchanged)
      const body = { ...NAMES, metadata: { name: 'changed' }, spec: { endpointSelector: {} } }
      return [
        codeOf(await change(exchanged, 'PATCH', PATH, { metadata: {} })),
        codeOf(await change(exchanged, 'POST', HERE, body)),
        codeOf(await change(exchanged, 'POST', HERE, body)),
      ]
    },
    expected: [404, 201, 409],
  },
  {
    name: 'a patch with an old version is 409, and null removes a field',
    reason: 'only one node takes a Lease that is free',
    async run(exchanged) {
      await begin(exchanged, 'changed')
      const found = bodyOf(await get(exchanged.api, PATH))
      const resourceVersion = at(found, 'metadata', 'resourceVersion')
      const patch = { metadata: { resourceVersion }, spec: { description: null } }
      const first = await change(exchanged, 'PATCH', PATH, patch)
      const labels = { a: 'b' }
      const second = await change(exchanged, 'PATCH', PATH, {
        metadata: { resourceVersion, labels },
      })
      return [codeOf(first), at(bodyOf(first), 'spec', 'description'), codeOf(second)]
    },
    expected: [200, undefined, 409],
  },
]
