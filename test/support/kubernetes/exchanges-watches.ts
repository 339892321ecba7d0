// Exchanges with watches.

import {
  putElsewhere,
  begin,
  ended,
  HERE,
  put,
  seconds,
  type ConformanceExchange,
} from './exchange.ts'
import { at, describeEvents, until, watch } from './watch-client.ts'

export const WATCHES: readonly ConformanceExchange[] = [
  {
    name: 'a watch brings the changes after its version, in order',
    reason: 'the reflector resumes from a version',
    async run(exchanged) {
      const version = await begin(exchanged, 'a')
      const seen = watch(
        exchanged.api,
        `${HERE}?watch=true&resourceVersion=${version}&timeoutSeconds=2`,
      )
      await put(exchanged, 'b')
      await put(exchanged, 'a', 'changed')
      await exchanged.cluster.write('DELETE', `${HERE}/b`)
      return await ended(seen)
    },
    expected: ['ADDED b', 'MODIFIED a', 'DELETED b', 'ended'],
  },
  {
    name: 'the removal of an object has a version of its own',
    reason: 'the version of the collection never goes back',
    async run(exchanged) {
      const version = await begin(exchanged, 'a')
      const seen = watch(
        exchanged.api,
        `${HERE}?watch=true&resourceVersion=${version}&timeoutSeconds=1`,
      )
      await exchanged.cluster.write('DELETE', HERE)
      await ended(seen)
      return Number(at(seen.events[0], 'object', 'metadata', 'resourceVersion')) > Number(version)
    },
    expected: true,
  },
  {
    name: 'a watch without a version begins with what exists',
    reason: 'watch-list builds on it',
    async run(exchanged) {
      await begin(exchanged, 'a', 'b')
      const seen = watch(exchanged.api, `${HERE}?watch=true&timeoutSeconds=1`)
      return (await ended(seen)).toSorted()
    },
    expected: ['ADDED a', 'ADDED b', 'ended'],
  },
  {
    name: 'a watch ends in an orderly way after its time',
    reason: 'the reflector continues at once',
    async run(exchanged) {
      const version = await begin(exchanged)
      return await ended(
        watch(exchanged.api, `${HERE}?watch=true&resourceVersion=${version}&timeoutSeconds=1`),
      )
    },
    expected: ['ended'],
  },
  {
    name: 'a watch that asks for bookmarks gets one if the kind has changed elsewhere',
    reason: 'a quiet watch resumes from a recent version',
    async run(exchanged) {
      const version = await begin(exchanged)
      const path = `${HERE}?watch=true&allowWatchBookmarks=true&resourceVersion=${version}&timeoutSeconds=4`
      const seen = watch(exchanged.api, path)
      await until('the watch is open', () => seen.isOpen)
      await putElsewhere(exchanged)
      return [...new Set(await ended(seen))]
    },
    expected: ['BOOKMARK', 'ended'],
  },
  {
    name: 'a watch about a kind that does not change gets no bookmark',
    reason: 'silence is no proof, and the reflector checks the version',
    of: '1.20',
    async run(exchanged) {
      const version = await begin(exchanged)
      const path = `${HERE}?watch=true&allowWatchBookmarks=true&resourceVersion=${version}&timeoutSeconds=4`
      return await ended(watch(exchanged.api, path))
    },
    expected: ['ended'],
  },
  {
    name: 'a watch from a version that is too old is an ERROR event in an answer of 200',
    reason: 'the reflector lists again',
    async run(exchanged) {
      await begin(exchanged, 'a')
      await exchanged.cluster.compact()
      const seen = watch(exchanged.api, `${HERE}?watch=true&resourceVersion=1`)
      return [...(await ended(seen)), seen.isOpen]
    },
    expected: ['ERROR 410', 'ended', true],
  },
  {
    name: 'a watch from the future is silent',
    reason: 'an open watch proves nothing',
    async run(exchanged) {
      const version = Number(await begin(exchanged)) + 1_000_000
      const seen = watch(exchanged.api, `${HERE}?watch=true&resourceVersion=${version}`)
      await until('the watch is open', () => seen.isOpen)
      await put(exchanged, 'a')
      await seconds(0.5)
      seen.cancel()
      return [seen.events, seen.end]
    },
    expected: [[], undefined],
  },
  {
    name: 'watch-list is 422 on a server that does not know it',
    reason: 'the reflector lists in pages',
    of: '1.20',
    async run({ api }) {
      const path = `${HERE}?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan`
      const seen = watch(api, path)
      await ended(seen)
      return seen.end?.kind === 'answer' ? seen.end.code : seen.end
    },
    expected: 422,
  },
  {
    name: 'watch-list brings the objects, an annotated bookmark, and then changes',
    reason: 'one request lists and watches',
    of: '1.36',
    async run(exchanged) {
      await begin(exchanged, 'a', 'b')
      const path = `${HERE}?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan`
      const seen = watch(exchanged.api, path)
      await until('the initial state came', () => seen.events.length === 3)
      await put(exchanged, 'c')
      await until('the change came', () => seen.events.length === 4)
      seen.cancel()
      const mark = at(
        seen.events[2],
        'object',
        'metadata',
        'annotations',
        'k8s.io/initial-events-end',
      )
      const [first = '', second = '', ...others] = describeEvents(seen.events)
      return [[first, second].toSorted(), others, mark]
    },
    expected: [['ADDED a', 'ADDED b'], ['BOOKMARK', 'ADDED c'], 'true'],
  },
  {
    name: 'a deleted object with a finalizer stays, with the time of its deletion',
    reason: 'the owner knows that it is going',
    of: '1.20',
    async run(exchanged) {
      const version = await begin(exchanged, 'a')
      await exchanged.cluster.write('PATCH', `${HERE}/a`, {
        metadata: { finalizers: ['test/hold'] },
      })
      await exchanged.cluster.write('DELETE', `${HERE}/a`)
      await exchanged.cluster.write('PATCH', `${HERE}/a`, { metadata: { finalizers: null } })
      const seen = watch(
        exchanged.api,
        `${HERE}?watch=true&resourceVersion=${version}&timeoutSeconds=1`,
      )
      const events = await ended(seen)
      return [events, typeof at(seen.events[1], 'object', 'metadata', 'deletionTimestamp')]
    },
    expected: [['MODIFIED a', 'MODIFIED a', 'DELETED a', 'ended'], 'string'],
  },
]
