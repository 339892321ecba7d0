// The parts of the exchanges of the conformance test. An exchange sends some requests and returns what it observed, in a form
// without versions and times.

import type { ApiPort, ApiWriter } from '../../../src/kubernetes/connection/api-port.ts'
import type { ConnectionCounts } from '../../../src/kubernetes/connection/connection-counts.ts'
import type { Cluster } from './cluster.ts'
import { at, bodyOf, describeEvents, get, until, type Watched } from './watch-client.ts'

export const NAMESPACE = 'conformance'
export const RESOURCE = 'ciliumnetworkpolicies'
export const GROUP = '/apis/cilium.io/v2'
export const EVERYWHERE = `${GROUP}/${RESOURCE}`
export const HERE = `${GROUP}/namespaces/${NAMESPACE}/${RESOURCE}`

export interface Exchanged {
  readonly cluster: Cluster
  /** With all rights, with the rights of a node, with a token that the server does not know. */
  readonly api: ApiWriter
  readonly node: ApiPort
  readonly stranger: ApiPort
  /** Of `api`. */
  readonly counts: ConnectionCounts
  close(): void
}

export interface ConformanceExchange {
  readonly name: string
  /** What namegate does because of it. */
  readonly reason: string
  /** The version that shows it; absent: both. */
  readonly of?: '1.20' | '1.36'
  run(exchanged: Exchanged): Promise<unknown>
  readonly expected: unknown
}

export async function put({ cluster }: Exchanged, name: string, text = ''): Promise<void> {
  const body = {
    apiVersion: 'cilium.io/v2',
    kind: 'CiliumNetworkPolicy',
    metadata: { name },
    spec: { endpointSelector: {}, description: text },
  }
  const code = await cluster.write('POST', HERE, body)
  if (code === 409) await cluster.write('PATCH', `${HERE}/${name}`, { spec: body.spec })
  else if (code !== 201) throw new Error(`the server answered ${code} to a new policy`)
}

/** Adds a policy to another namespace, and removes it. */
export async function putElsewhere({ cluster }: Exchanged): Promise<void> {
  const other = `${GROUP}/namespaces/default/${RESOURCE}`
  const spec = { endpointSelector: {} }
  const names = { apiVersion: 'cilium.io/v2', kind: 'CiliumNetworkPolicy' }
  await cluster.write('POST', other, { ...names, metadata: { name: 'elsewhere' }, spec })
  await cluster.write('DELETE', `${other}/elsewhere`)
}

/** Begins with exactly these policies. Returns the version of the list. */
export async function begin(exchanged: Exchanged, ...names: readonly string[]): Promise<string> {
  await exchanged.cluster.write('DELETE', HERE)
  for (const name of names) await put(exchanged, name)
  return await versionOf(exchanged)
}

async function versionOf({ api }: Exchanged): Promise<string> {
  return String(at(bodyOf(await get(api, HERE)), 'metadata', 'resourceVersion'))
}

function itemsOf(body: unknown): readonly unknown[] {
  const items = at(body, 'items')
  return Array.isArray(items) ? items : []
}

export function namesOf(body: unknown): readonly unknown[] {
  return itemsOf(body).map((each) => at(each, 'metadata', 'name'))
}

export async function ended(seen: Watched): Promise<readonly string[]> {
  await until('the watch ended', () => seen.end !== undefined)
  return [...describeEvents(seen.events), seen.end?.kind ?? '']
}

export async function seconds(count: number): Promise<void> {
  await new Promise((done) => setTimeout(done, count * 1000))
}
