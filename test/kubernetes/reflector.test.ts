// The reflector over a model of the API server, on fake time: the stories of reflector-stories.txt, and the numbers that it counts.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { RandomPool, systemRandom } from '../../src/core/random.ts'
import { PAGE_MS } from '../../src/kubernetes/reflector/reflector-options.ts'
import { RelistGate } from '../../src/kubernetes/reflector/relist-gate.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { ReflectorLab } from '../support/kubernetes/reflector-lab.ts'

interface Story {
  readonly name: string
  readonly reason: string
  readonly resource: string
  readonly isOld: boolean
  /** Steps, each with the log of this step. */
  readonly steps: readonly (readonly [step: string, log: readonly string[]])[]
  readonly names: string
}

function parseStory(text: string): Story {
  const [title = '', ...lines] = text.split('\n').filter((line) => line !== '')
  const [name = '', reason = ''] = title.split(/: (.*)/)
  const steps: [string, string[]][] = []
  const settings = new Map([['collection', 'networkpolicies']])
  for (const line of lines) {
    const [word = '', value = ''] = line.split(' ')
    if (line.startsWith('    ')) steps.at(-1)?.[1].push(line.trim())
    else if (word === '=' || word === 'collection' || word === 'server')
      settings.set(word, line.slice(word.length + 1) || value)
    else steps.push([line, []])
  }
  return {
    name,
    reason,
    resource: settings.get('collection') ?? '',
    isOld: settings.get('server') === '1.20',
    steps,
    names: settings.get('=') ?? '',
  }
}

const STORIES = readFileSync(`${import.meta.dirname}/reflector-stories.txt`, 'utf8')
  .split('\n## ')
  .slice(1)
  .map(parseStory)

for (const { name, reason, resource, isOld, steps, names } of STORIES) {
  test(`Reflector ${name}`, () => {
    const lab = new ReflectorLab({ resource, hasWatchList: !isOld })
    const played = steps.map(([step]) => [step, lab.run([step])])
    assert.deepEqual(played, steps, reason)
    assert.equal(lab.names.join(' '), names, reason)
  })
}

test('Reflector counts requests by code, lists by cause, events and bookmarks', () => {
  const lab = new ReflectorLab({ hasWatchList: false })
  lab.run([
    'put a',
    'start',
    'pass 1s',
    'put b',
    'bookmark',
    'fault resourceVersion= 410',
    'drop',
    'pass 60s',
  ])
  const { lists, requests, events, bookmarks } = lab.reflector.counts
  assert.deepEqual(lists, {
    start: 1,
    fallback: 2,
    retry: 0,
    expired: 1,
    behind: 0,
    refused: 0,
    appeared: 0,
  })
  assert.deepEqual(Object.fromEntries(requests), { 200: 4, 410: 1, 422: 2, lost: 1 })
  assert.deepEqual([events, bookmarks], [1, 1])
})

test('Reflector says what is current only after a list of the newest state, an event or a bookmark', () => {
  const rows: readonly (readonly [steps: readonly string[], isCurrent: boolean, reason: string])[] =
    [
      [['start', 'pass 1s'], false, 'a list from the cache can be old'],
      [['start', 'pass 1s', 'put a'], true, 'an event'],
      [['start', 'pass 1s', 'pass 11m'], false, 'a check against the cache'],
      [['start', 'pass 1s', 'other', 'bookmark'], false, '1.20 has no bookmark about other kinds'],
    ]
  for (const [steps, isCurrent, reason] of rows) {
    const lab = new ReflectorLab({ resource: 'pods', hasWatchList: false })
    lab.run(steps)
    assert.equal(lab.currentAt >= 0, isCurrent, reason)
  }
  const lab = new ReflectorLab()
  lab.run(['start', 'pass 1s'])
  assert.ok(lab.currentAt >= 0, 'a list of the newest state')
})

test('Reflectors of a node begin together, and later list one after another', () => {
  const shared = { clock: new FakeClock(), gate: new RelistGate() }
  const resources = ['namespaces', 'networkpolicies', 'ciliumnetworkpolicies']
  const labs = resources.map((resource) => new ReflectorLab({ resource, ...shared }))
  const listedAt = (): readonly number[] =>
    labs.map(({ api }) => api.log.findLast(({ path }) => path.includes('sendInitial'))?.at ?? -1)
  for (const lab of labs) lab.run(['start'])
  shared.clock.advance(1_000)
  assert.deepEqual(listedAt(), [0, 0, 0], 'the first lists wait for nothing')
  for (const lab of labs) lab.run(['fault resourceVersion= 410', 'drop'])
  labs[0]?.run(['fault sendInitial silence'])
  shared.clock.advance(600_000)
  const [first = 0, second = 0, third = 0] = listedAt()
  assert.ok(first >= 30_000, `the list waited for half of the spread: ${first}`)
  assert.ok(second >= first + PAGE_MS && third > second, `${first} ${second} ${third}`)
})

test('Reflectors of many nodes spread their lists over the whole time', () => {
  const spreadMs = 60_000
  const random = new RandomPool(systemRandom)
  const times = Array.from({ length: 300 }, () => {
    const lab = new ReflectorLab({ random, spreadMs })
    lab.run(['start', 'pass 1s', 'fault resourceVersion= 410', 'drop', 'pass 70s'])
    return lab.api.log.findLast(({ path }) => path.includes('sendInitial'))?.at ?? 0
  })
  const sixths = Array.from(
    { length: 6 },
    (_, i) => times.filter((at) => Math.floor((at - 1_500) / 10_000) === i).length,
  )
  assert.ok(
    sixths.every((count) => count > 20),
    `lists by 10 s: ${sixths.join(' ')}`,
  )
})
