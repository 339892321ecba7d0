// Random changes and faults: once the faults are over, the owner of the reflector knows exactly what the server has. On the way, knowledge
// never goes back, and there is never more than one open request.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { RandomPool } from '../../src/core/random.ts'
import { Random } from '../support/models/random.ts'
import { ReflectorLab } from '../support/kubernetes/reflector-lab.ts'

const name = fc.constantFrom('a', 'b', 'c', 'd', 'e')
const path = fc.constantFrom('sendInitial', 'limit=', 'resourceVersion=', 'watch=true', '/')
const fault = fc.constantFrom(
  ...[
    'lost',
    'silence',
    'too-long',
    '400',
    '401',
    '403',
    '404',
    '410',
    '422',
    '429/3s',
    '500',
    '503',
    '504',
  ],
  '[]',
  '[null]',
  '[{"type":"ADDED","object":{"metadata":{"name":"a"}}}]',
  '[{"type":"ERROR","object":{"code":410}}]',
  '[{"type":"ERROR","object":{"code":500}}]',
  '[{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"1"}}}]',
)
const STEP = fc.oneof(
  { weight: 6, arbitrary: name.map((each) => `put ${each}`) },
  { weight: 4, arbitrary: name.map((each) => `remove ${each}`) },
  { weight: 6, arbitrary: fc.integer({ min: 1, max: 400 }).map((each) => `pass ${each}s`) },
  { weight: 2, arbitrary: fc.integer({ min: 1, max: 3_000 }).map((each) => `pass ${each}ms`) },
  { weight: 6, arbitrary: fc.tuple(path, fault).map((each) => `fault ${each.join(' ')}`) },
  fc.constantFrom('drop', 'away', 'back', 'compact', 'bookmark', 'other', 'lag 2', 'lag 0'),
  fc.constantFrom('deny list', 'deny watch', 'allow list', 'allow watch', 'undefine', 'define'),
)
/** After these steps the server has no fault. */
const HEAL = ['back', 'allow list', 'allow watch', 'define', 'lag 0']

function play(
  resource: string,
  hasWatchList: boolean,
  seed: number,
  steps: readonly string[],
): void {
  const source = new Random(seed)
  const random = new RandomPool({ fill: (target) => target.set(source.octets(target.length)) })
  const lab = new ReflectorLab({ resource, hasWatchList, random })
  const versions = new Map<string, number>()
  lab.run(['start'])
  for (const step of steps) {
    lab.run([step])
    assert.ok(lab.api.openCount <= 1, `${lab.api.openCount} open requests after ${step}`)
    for (const { uid, resourceVersion } of Array.from(
      lab.objects.values(),
      (each) => each.metadata,
    )) {
      assert.ok(
        Number(resourceVersion) >= (versions.get(uid) ?? 0),
        `${uid} went back after ${step}`,
      )
      versions.set(uid, Number(resourceVersion))
    }
  }
  lab.api.faults.length = 0
  lab.run([...HEAL, 'pass 20m'])
  assert.equal(lab.state, 'watching', lab.log.slice(-20).join('\n'))
  const known = Array.from(lab.objects.values(), ({ metadata }) => metadata.resourceVersion).sort()
  const there = lab.model.all(resource).map(({ metadata }) => metadata.resourceVersion)
  assert.deepEqual(known, there.toSorted(), lab.log.slice(-20).join('\n'))
}

test('Reflector ends with the objects of the server after random changes and faults (property)', () => {
  const resources = fc.constantFrom('pods', 'networkpolicies', 'clusternetworkpolicies')
  const steps = fc.array(STEP, { maxLength: 60 })
  fc.assert(fc.property(resources, fc.boolean(), fc.integer(), steps, play), { numRuns: 150 })
})
