// Exchanges with lists.

import {
  begin,
  ended,
  EVERYWHERE,
  GROUP,
  HERE,
  NAMESPACE,
  namesOf,
  put,
  RESOURCE,
  type ConformanceExchange,
} from './exchange.ts'
import { at, bodyOf, codeOf, describeEvents, get, until, watch } from './watch-client.ts'

export const LISTS: readonly ConformanceExchange[] = [
  {
    name: 'a list has pages of one version',
    reason: 'PagedList refuses pages of different versions',
    async run(exchanged) {
      await begin(exchanged, 'a', 'b', 'c')
      const first = bodyOf(await get(exchanged.api, `${HERE}?limit=2`))
      const token = encodeURIComponent(String(at(first, 'metadata', 'continue')))
      await put(exchanged, 'd')
      const second = bodyOf(await get(exchanged.api, `${HERE}?limit=2&continue=${token}`))
      const versions = [first, second].map((each) => at(each, 'metadata', 'resourceVersion'))
      return [namesOf(first), namesOf(second), new Set(versions).size]
    },
    expected: [['a', 'b'], ['c'], 1],
  },
  {
    name: 'a list at version 0 has one page',
    reason: 'such a list needs another bound',
    async run(exchanged) {
      await begin(exchanged, 'a', 'b', 'c')
      let names: readonly unknown[] = []
      await until('the cache has everything', async () => {
        names = namesOf(bodyOf(await get(exchanged.api, `${HERE}?resourceVersion=0&limit=1`)))
        return names.length === 3
      })
      return names.map(String).toSorted()
    },
    expected: ['a', 'b', 'c'],
  },
  {
    name: 'the items of a list have no kind if the server is old, and events have one',
    reason: 'readObject adds the kind',
    async run(exchanged) {
      await begin(exchanged, 'a')
      const body = bodyOf(await get(exchanged.api, HERE))
      const seen = watch(exchanged.api, `${HERE}?watch=true&timeoutSeconds=1`)
      await ended(seen)
      return [at(body, 'kind'), at(seen.events[0], 'object', 'kind')]
    },
    expected: ['CiliumNetworkPolicyList', 'CiliumNetworkPolicy'],
  },
  {
    name: 'a collection of a namespace has only its objects',
    reason: 'one target for each namespace',
    async run(exchanged) {
      await begin(exchanged, 'a')
      const other = `${GROUP}/namespaces/default/${RESOURCE}`
      return [
        namesOf(bodyOf(await get(exchanged.api, other))),
        namesOf(bodyOf(await get(exchanged.api, EVERYWHERE))),
      ]
    },
    expected: [[], ['a']],
  },
  {
    name: 'a page after a compaction is 410, with a token for another version',
    reason: 'PagedList never uses this token',
    of: '1.20', // 1.36 keeps the pages in its cache
    async run(exchanged) {
      await begin(exchanged, 'a', 'b', 'c')
      const first = bodyOf(await get(exchanged.api, `${HERE}?limit=1`))
      const token = encodeURIComponent(String(at(first, 'metadata', 'continue')))
      await put(exchanged, 'd')
      await exchanged.cluster.compact()
      const second = await get(exchanged.api, `${HERE}?limit=1&continue=${token}`)
      const next = at(bodyOf(second), 'metadata', 'continue')
      return [codeOf(second), at(bodyOf(second), 'reason'), typeof next === 'string' && next !== '']
    },
    expected: [410, 'Expired', true],
  },
  {
    name: 'a list from the future is 504',
    reason: 'the reflector asks for the newest state',
    async run(exchanged) {
      const version = Number(await begin(exchanged)) + 1_000_000
      const path = `${HERE}?resourceVersion=${version}&resourceVersionMatch=NotOlderThan`
      const end = await get(exchanged.api, path)
      const causes = at(bodyOf(end), 'details', 'causes')
      const cause: unknown = Array.isArray(causes) ? causes[0] : undefined
      return [codeOf(end), at(cause, 'reason')]
    },
    expected: [504, 'ResourceVersionTooLarge'],
  },
  {
    name: 'a version that is no number is refused',
    reason: 'the reflector compares only decimal versions',
    async run({ api }) {
      const seen = watch(api, `${HERE}?watch=true&resourceVersion=abc`)
      await ended(seen)
      const codes = [codeOf(await get(api, `${HERE}?resourceVersion=abc`))]
      if (seen.end?.kind === 'answer') codes.push(seen.end.code)
      return codes.map((code) => code === 400 || code === 500)
    },
    expected: [true, true],
  },
  {
    name: 'a large list is packed',
    reason: 'the connection asks for gzip',
    async run(exchanged) {
      await begin(exchanged)
      for (let i = 0; i < 20; i++) await put(exchanged, `large-${i}`, 'x'.repeat(20_000))
      const { counts } = exchanged
      const before = counts.octets
      const length = JSON.stringify(bodyOf(await get(exchanged.api, HERE))).length
      return [length > 400_000, counts.octets - before < length / 3]
    },
    expected: [true, true],
  },
  {
    name: 'pods are selected by their node',
    reason: 'namegate reads only the pods of its node',
    of: '1.20',
    async run({ api, cluster }) {
      const pods = `/api/v1/namespaces/${NAMESPACE}/pods`
      const spec = { containers: [{ name: 'c', image: 'i' }], terminationGracePeriodSeconds: 0 }
      for (const node of ['one', 'two']) {
        const body = { metadata: { name: node }, spec: { ...spec, nodeName: node } }
        await cluster.write('POST', pods, body)
      }
      return namesOf(bodyOf(await get(api, `/api/v1/pods?fieldSelector=spec.nodeName%3Dtwo`)))
    },
    expected: ['two'],
  },
  {
    name: 'a list and a watch have the pods of all nodes but one',
    reason: 'peers are the pods of other nodes',
    of: '1.20',
    async run({ api, cluster }) {
      const pods = `/api/v1/namespaces/${NAMESPACE}/pods`
      const path = `${pods}?fieldSelector=spec.nodeName!%3Dtwo`
      const list = await get(api, path)
      const version = String(at(bodyOf(list), 'metadata', 'resourceVersion'))
      const seen = watch(api, `${path}&watch=true&resourceVersion=${version}`)
      const spec = { containers: [{ name: 'c', image: 'i' }], terminationGracePeriodSeconds: 0 }
      for (const [name, nodeName] of [
        ['near', 'two'],
        ['far', 'one'],
      ]) {
        await cluster.write('POST', pods, { metadata: { name }, spec: { ...spec, nodeName } })
      }
      await until('an event came', () => seen.events.length > 0)
      seen.cancel()
      return [namesOf(bodyOf(list)), describeEvents(seen.events)]
    },
    expected: [['one'], ['ADDED far']],
  },
]
