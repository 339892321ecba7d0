// Exchanges about rights and definitions. The last two delete and add the definition of a kind.

import {
  begin,
  ended,
  EVERYWHERE,
  GROUP,
  HERE,
  namesOf,
  put,
  RESOURCE,
  type ConformanceExchange,
} from './exchange.ts'
import { at, bodyOf, codeOf, describeEvents, get, until, watch } from './watch-client.ts'

export const RIGHTS: readonly ConformanceExchange[] = [
  {
    name: 'an unknown token is 401',
    reason: 'the connection reads the token again',
    async run({ stranger }) {
      return codeOf(await get(stranger, HERE))
    },
    expected: 401,
  },
  {
    name: 'without rights a list and a watch are 403, and discovery is not',
    reason: 'the reflector tells a missing right from a missing kind',
    async run({ node }) {
      const seen = watch(node, `${EVERYWHERE}?watch=true`)
      await ended(seen)
      const list = await get(node, EVERYWHERE)
      const message = String(at(bodyOf(list), 'message'))
      const resources = at(bodyOf(await get(node, GROUP)), 'resources')
      const names = Array.isArray(resources)
        ? resources.map((each: unknown) => at(each, 'name'))
        : []
      return [
        codeOf(list),
        seen.end?.kind === 'answer' ? seen.end.code : seen.end,
        /cannot list resource "ciliumnetworkpolicies" in API group "cilium\.io" at the cluster scope/.test(
          message,
        ),
        names.includes(RESOURCE),
      ]
    },
    expected: [403, 403, true, true],
  },
  {
    name: 'without rights the server says if it is ready',
    reason: 'a server that starts refuses kinds and rights that it has',
    async run({ node, stranger }) {
      return [codeOf(await get(node, '/readyz')), codeOf(await get(stranger, '/readyz'))]
    },
    expected: [200, 401],
  },
  {
    name: 'a missing kind without rights is 403 too, and discovery does not have it',
    reason: 'only discovery tells',
    async run({ node }) {
      const missing = '/apis/policy.networking.k8s.io/v1alpha2'
      return [
        codeOf(await get(node, `${missing}/clusternetworkpolicies`)),
        codeOf(await get(node, missing)),
      ]
    },
    expected: [403, 404],
  },
  {
    name: 'a missing kind with rights is 404',
    reason: 'the state is absent',
    async run({ api }) {
      return codeOf(
        await get(api, '/apis/policy.networking.k8s.io/v1alpha2/clusternetworkpolicies'),
      )
    },
    expected: 404,
  },
  {
    name: 'after a right is taken away an open watch goes on, and the next list is 403',
    reason: 'the reflector finds out when the watch ends',
    async run(exchanged) {
      const { cluster, node } = exchanged
      await begin(exchanged)
      await cluster.setRight(RESOURCE, true)
      await until('the right works', async () => codeOf(await get(node, EVERYWHERE)) === 200)
      const seen = watch(node, `${EVERYWHERE}?watch=true&timeoutSeconds=60`)
      await until('the watch is open', () => seen.isOpen)
      await cluster.setRight(RESOURCE, false)
      await until('the right is gone', async () => codeOf(await get(node, EVERYWHERE)) === 403)
      await put(exchanged, 'late')
      await until('the event came', () => seen.events.length > 0)
      seen.cancel()
      return describeEvents(seen.events)
    },
    expected: ['ADDED late'],
  },
  {
    name: 'when a definition goes, a watch gets a removal for each object and ends',
    reason: 'the owner holds mass removals',
    async run(exchanged) {
      const { api, cluster } = exchanged
      const version = await begin(exchanged, 'a', 'b')
      const seen = watch(api, `${EVERYWHERE}?watch=true&resourceVersion=${version}`)
      await until('the watch is open', () => seen.isOpen)
      await cluster.setDefinition(RESOURCE, false)
      const events = await ended(seen)
      await until('the list is 404', async () => codeOf(await get(api, EVERYWHERE)) === 404)
      return [events.slice(0, -1).toSorted(), events.at(-1)]
    },
    expected: [['DELETED a', 'DELETED b'], 'ended'],
  },
  {
    name: 'a definition that comes again has no objects',
    reason: 'absent ends with a list',
    async run({ api, cluster }) {
      await cluster.setDefinition(RESOURCE, true)
      let list = await get(api, EVERYWHERE)
      await until('the list is there', async () => {
        list = await get(api, EVERYWHERE)
        return codeOf(list) === 200
      })
      return namesOf(bodyOf(list))
    },
    expected: [],
  },
]
