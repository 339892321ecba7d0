// Runs the exchanges of the conformance test on one cluster.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { systemClock } from '../../../src/core/clock.ts'
import { Connection } from '../../../src/kubernetes/connection/connection.ts'
import type { Cluster } from './cluster.ts'
import { NAMESPACE, type Exchanged } from './exchange.ts'
import { CHANGES } from './exchanges-changes.ts'
import { LISTS } from './exchanges-lists.ts'
import { RIGHTS } from './exchanges-rights.ts'
import { WATCHES } from './exchanges-watches.ts'

function connect(cluster: Cluster): Exchanged {
  const open: Connection[] = []
  const as = (token: 'admintoken' | 'nodetoken' | 'wrongtoken'): Connection => {
    const access = cluster.access(token)
    const connection = new Connection({ access, clock: systemClock, agent: 'namegate/test' })
    open.push(connection)
    return connection
  }
  const [api, node, stranger] = [as('admintoken'), as('nodetoken'), as('wrongtoken')]
  const close = (): void => open.forEach((each) => each.close())
  return { cluster, api, node, stranger, counts: api.counts, close }
}

/** The exchanges follow each other. `clusterOf` returns the reason if there is no cluster. */
export function conform(name: string, clusterOf: () => Cluster | string): void {
  describe(name, { concurrency: false }, () => {
    let exchanged: Exchanged | undefined
    before(async () => {
      const cluster = clusterOf()
      if (typeof cluster === 'string') return
      exchanged = connect(cluster)
      const metadata = { name: NAMESPACE }
      if (!cluster.isNew) await cluster.write('POST', '/api/v1/namespaces', { metadata })
    })
    after(() => exchanged?.close())
    for (const exchange of [...LISTS, ...WATCHES, ...CHANGES, ...RIGHTS]) {
      it(exchange.name, async (context) => {
        if (exchanged === undefined) return context.skip(reasonOf(clusterOf()))
        const version = exchanged.cluster.isNew ? '1.36' : '1.20'
        const { of = version, expected, reason } = exchange
        if (of !== version) return context.skip(`only servers as of ${of} show this`)
        assert.deepEqual(await exchange.run(exchanged), expected, reason)
      })
    }
  })
}

function reasonOf(cluster: Cluster | string): string {
  return typeof cluster === 'string' ? cluster : 'not started'
}
