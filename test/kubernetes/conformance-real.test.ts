// The behaviour of an API server on which namegate relies: the same exchanges with kube-apiserver 1.20.2 and the API machinery of 1.36.4 as
// with the fake server (conformance.test.ts). NAMEGATE_TESTBED names the folder of the testbed.

import { after, before, describe } from 'node:test'
import type { Cluster } from '../support/kubernetes/cluster.ts'
import { conform } from '../support/kubernetes/conform.ts'
import { NO_TESTBED, startTestbed, type Testbed } from '../support/kubernetes/testbed.ts'

describe('the real API servers', { skip: NO_TESTBED }, () => {
  let testbed: Testbed | string = 'not started'
  const clusterOf = (place: number): Cluster | string =>
    typeof testbed === 'string' ? testbed : (testbed.clusters[place] ?? 'not started')
  before(async () => {
    testbed = await startTestbed()
  })
  after(async () => {
    if (typeof testbed !== 'string') await testbed.stop()
  })
  conform('kube-apiserver 1.20.2', () => clusterOf(0))
  conform('the API machinery of 1.36.4', () => clusterOf(1))
})
