// How long changes of a cluster take until they are enforced: which times count, and the metric of a daemon.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EnforcementTimes } from '../../src/kubernetes/cluster/enforcement-times.ts'
import type { Histogram } from '../../src/core/tables/histogram.ts'
import type { ReceivedObjects } from '../../src/sources/files/given-items.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { ApiModel } from '../support/kubernetes/api-model.ts'
import { MemoryApi } from '../support/kubernetes/memory-api.ts'
import { withLab } from '../support/labs/daemon-lab.ts'
import { readExposition } from '../support/nodes/metrics.ts'

const NONE = new Map<string, undefined>()
const POD: ReceivedObjects = {
  policies: NONE,
  endpoints: new Map([['pod', undefined]]),
  peers: NONE,
}
const POLICY: ReceivedObjects = {
  policies: new Map([['policy', undefined]]),
  endpoints: NONE,
  peers: NONE,
}

/** `change kind age`: a change that was received `age` milliseconds ago. */
const ROWS: readonly {
  readonly reason: string
  readonly steps: readonly (readonly ['pod' | 'policy', number] | 'in force' | 'forget' | number)[]
  /** Count and sum of the times. */
  readonly pod: readonly [number, number]
  readonly policy: readonly [number, number]
}[] = [
  {
    reason: 'a change counts from the moment of its event',
    steps: [['pod', 10], 5, 'in force'],
    pod: [1, 15],
    policy: [0, 0],
  },
  {
    reason: 'changes that come into force together count once, from the oldest',
    steps: [['policy', 0], 20, ['policy', 0], 20, 'in force'],
    pod: [0, 0],
    policy: [1, 40],
  },
  {
    reason: 'kinds count apart',
    steps: [['policy', 0], 20, ['pod', 0], 20, 'in force'],
    pod: [1, 20],
    policy: [1, 40],
  },
  {
    reason: 'transitions without a change of the cluster do not count',
    steps: ['in force', ['pod', 0], 1, 'in force', 50, 'in force'],
    pod: [1, 1],
    policy: [0, 0],
  },
  {
    reason: 'a change that changed nothing does not count',
    steps: [['pod', 0], 'forget', 50, 'in force'],
    pod: [0, 0],
    policy: [0, 0],
  },
]

for (const { reason, steps, pod, policy } of ROWS) {
  void test(`EnforcementTimes: ${reason}`, () => {
    const clock = new FakeClock()
    const times = new EnforcementTimes(clock)
    for (const step of steps) {
      if (step === 'in force') times.inForce()
      else if (step === 'forget') times.forget()
      else if (typeof step === 'number') clock.advance(step)
      else times.begin(step[0] === 'pod' ? POD : POLICY, clock.now() - step[1])
    }
    assert.deepEqual([countAndSum(times.pod), countAndSum(times.policy)], [pod, policy])
  })
}

function countAndSum({ counts, sum }: Histogram): readonly [number, number] {
  return [counts.reduce((all, each) => all + each, 0), sum]
}

void test('a daemon counts each change of pods and policies once it is enforced', async () => {
  const model = new ApiModel()
  const put = (resource: string, name: string, more: object): void => {
    model.put(resource, { metadata: { name, namespace: 'shop' }, ...more })
  }
  const pod = (label: string, phase = 'Running') => ({
    metadata: { name: 'web', namespace: 'shop', labels: { app: label } },
    spec: { nodeName: 'n' },
    status: { phase, podIP: '10.0.0.1', podIPs: [{ ip: '10.0.0.1' }] },
  })
  const policy = (cidr: string) => ({
    spec: { endpointSelector: {}, egress: [{ toCIDR: [cidr] }] },
  })
  model.put('namespaces', { metadata: { name: 'shop' } })
  const options = {
    files: {},
    policies: [],
    endpoints: [],
    config: 'kubernetes: { node: n }',
    cluster: (clock: FakeClock) => new MemoryApi(model, clock),
  }
  await withLab(options, async (lab) => {
    const counts = async (): Promise<readonly (number | undefined)[]> => {
      await lab.pass(100)
      const { samples } = readExposition(await lab.metrics())
      return ['pod', 'policy'].map((kind) =>
        samples.get(`namegate_kubernetes_enforcement_seconds_count{kind="${kind}"}`),
      )
    }
    assert.deepEqual(await counts(), [0, 0])
    put('ciliumnetworkpolicies', 'a', policy('192.0.2.0/24'))
    assert.deepEqual(await counts(), [0, 1])
    model.put('pods', pod('web'))
    assert.deepEqual(await counts(), [1, 1])
    model.put('pods', { ...pod('web'), metadata: { ...pod('web').metadata, annotations: {} } })
    assert.deepEqual(await counts(), [1, 1], 'nothing of the endpoint has changed')
    model.put('pods', pod('shop'))
    put('ciliumnetworkpolicies', 'a', policy('198.51.100.0/24'))
    assert.deepEqual(await counts(), [2, 2])
    model.remove('pods', 'web', 'shop')
    assert.deepEqual(await counts(), [3, 2])
  })
})
