// The behaviour of an API server on which namegate relies: the same exchanges with the fake server as with the real ones
// (conformance-real.test.ts). All must show the same. So the fake behaves like the real ones, and tests with the fake are valid.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe } from 'node:test'
import { makeCertificate, NO_OPENSSL } from '../support/kubernetes/certificates.ts'
import { fakeCluster, type Cluster } from '../support/kubernetes/cluster.ts'
import { conform } from '../support/kubernetes/conform.ts'

describe('the fake API server', { skip: NO_OPENSSL, concurrency: true }, () => {
  const folder = mkdtempSync(join(tmpdir(), 'namegate-conformance-'))
  const clusters: Cluster[] = []
  before(async () => {
    const certificate = makeCertificate(folder)
    clusters.push(await fakeCluster(false, certificate), await fakeCluster(true, certificate))
  })
  after(async () => {
    for (const cluster of clusters) await cluster.close()
    rmSync(folder, { recursive: true })
  })
  conform('as of 1.20', () => clusters[0] ?? 'not started')
  conform('as of 1.36', () => clusters[1] ?? 'not started')
})
