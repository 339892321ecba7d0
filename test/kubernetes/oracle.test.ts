// The reflector beside the informer of @kubernetes/client-node 1.4.0 (decision 0050): after the same random changes and faults of a fake
// server, both hold the objects of the server. `npm run property -- --runs 100x kubernetes/oracle` makes 100,000 changes.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { CoreV1Api, KubeConfig, makeInformer, type V1Namespace } from '@kubernetes/client-node'
import { systemClock } from '../../src/core/clock.ts'
import { RandomPool, systemRandom } from '../../src/core/random.ts'
import { COLLECTIONS, targetOf } from '../../src/kubernetes/reflector/collections.ts'
import { Connection } from '../../src/kubernetes/connection/connection.ts'
import type { KubernetesObject } from '../../src/kubernetes/reflector/objects.ts'
import { Reflector } from '../../src/kubernetes/reflector/reflector.ts'
import { RelistGate } from '../../src/kubernetes/reflector/relist-gate.ts'
import { Random } from '../support/models/random.ts'
import { runsOf } from '../support/properties.ts'
import { ApiModel } from '../support/kubernetes/api-model.ts'
import { makeCertificate, NO_OPENSSL } from '../support/kubernetes/certificates.ts'
import { accessOf } from '../support/kubernetes/cluster.ts'
import { FakeApiServer } from '../support/kubernetes/fake-api-server.ts'
import { until } from '../support/kubernetes/watch-client.ts'

const CHANGES = runsOf(1_000)
const PER_ROUND = 100
const SEED = Number(process.env['NAMEGATE_SEED'] ?? 15)
const folder = mkdtempSync(join(tmpdir(), 'namegate-oracle-'))
after(() => rmSync(folder, { recursive: true }))

/** Something that holds namespaces. */
interface Holder {
  /** `name version` of each, sorted. */
  held(): readonly string[]
  stop(): unknown
}

function lines(
  objects: Iterable<{
    readonly metadata?: { readonly name?: string; readonly resourceVersion?: string }
  }>,
): readonly string[] {
  return Array.from(
    objects,
    ({ metadata }) => `${metadata?.name} ${metadata?.resourceVersion}`,
  ).sort()
}

function startReflector(origin: string): Holder {
  const api = new Connection({
    access: accessOf(origin, 'admintoken'),
    clock: systemClock,
    agent: 'test',
  })
  const known = new Map<string, KubernetesObject>()
  const collection = COLLECTIONS.find(({ resource }) => resource === 'namespaces')
  assert.ok(collection !== undefined)
  const reflector = new Reflector({
    target: targetOf(collection, undefined, ''),
    api,
    clock: systemClock,
    random: new RandomPool(systemRandom),
    gate: new RelistGate(),
    spreadMs: 50,
    events: {
      onList(objects) {
        known.clear()
        for (const object of objects) known.set(object.metadata.uid, object)
      },
      onChange: (object) => known.set(object.metadata.uid, object),
      onRemove: ({ metadata }) => known.delete(metadata.uid),
      onState: () => undefined,
      onCurrent: () => undefined,
      onMalformed: (fault) => assert.fail(fault),
    },
  })
  reflector.start()
  return {
    held: () => lines(known.values()),
    stop() {
      reflector.stop()
      api.close()
    },
  }
}

/** An informer stops at most errors, so it is started again. */
function startInformer(origin: string): Holder {
  const config = new KubeConfig()
  config.loadFromClusterAndUser(
    { name: 'c', server: origin, skipTLSVerify: true },
    { name: 'u', token: 'admintoken' },
  )
  const core = config.makeApiClient(CoreV1Api)
  const informer = makeInformer<V1Namespace>(
    config,
    '/api/v1/namespaces',
    async () => await core.listNamespace(),
  )
  let isStopped = false
  const start = (): void => {
    if (!isStopped) informer.start().catch(again)
  }
  const again = (): void => void setTimeout(start, 50)
  informer.on('error', again)
  start()
  return {
    held: () => lines(informer.list()),
    stop() {
      isStopped = true
      return informer.stop()
    },
  }
}

function change(model: ApiModel, random: Random): void {
  const name = `n${random.below(40)}`
  if (random.oneIn(3)) model.remove('namespaces', name)
  else model.put('namespaces', { metadata: { name, labels: { n: String(random.next()) } } })
}

/** What happens to the server between two rounds of changes. */
function fail(server: FakeApiServer, random: Random): void {
  switch (random.below(5)) {
    case 0:
      return server.breakAll()
    case 1:
      server.breakAll()
      return server.model.compact()
    case 2:
      return server.sayGoodbye()
    case 3:
      return server.endWatches()
    default:
  }
}

test(
  'Reflector and the informer of client-node end with the same objects (property)',
  { skip: NO_OPENSSL },
  async () => {
    const model = new ApiModel()
    const server = new FakeApiServer(model, makeCertificate(folder))
    await server.listen()
    const random = new Random(SEED)
    const holders = [startReflector(server.origin), startInformer(server.origin)]
    try {
      for (let done = 0; done < CHANGES; done += PER_ROUND) {
        for (let i = 0; i < PER_ROUND; i++) {
          change(model, random)
          if (random.oneIn(10)) await new Promise((next) => setImmediate(next))
          if (random.oneIn(100)) fail(server, random)
        }
        const there = lines(model.all('namespaces'))
        const isSame = (holder: Holder): boolean => holder.held().join() === there.join()
        await until(`both hold the objects after ${done} changes (NAMEGATE_SEED=${SEED})`, () =>
          holders.every(isSame),
        )
      }
    } finally {
      await Promise.all(holders.map((holder) => holder.stop()))
      await server.close()
    }
  },
)
