// A cluster for the conformance exchanges: a real control plane (testbed.ts) or the fake API server. Both are used in the same way.

import type { ApiAccess } from '../../../src/kubernetes/connection/access.ts'
import { COLLECTIONS } from '../../../src/kubernetes/reflector/collections.ts'
import { ApiModel } from './api-model.ts'
import type { ServerCertificate } from './certificates.ts'
import { FakeApiServer } from './fake-api-server.ts'
import { write } from './write.ts'

export type Token = 'admintoken' | 'nodetoken' | 'wrongtoken'

export interface Cluster {
  readonly name: string
  /** True: a server as of 1.36. It has custom resources only. False: 1.20, with all kinds. */
  readonly isNew: boolean
  access(token: Token): ApiAccess
  /** Sends a change with the rights of an administrator. Returns the status. */
  write(method: 'POST' | 'PATCH' | 'DELETE', path: string, body?: unknown): Promise<number>
  /** Forgets the history of all objects. */
  compact(): Promise<void>
  /** Gives the node the right to list and watch a resource, or takes it away. */
  setRight(resource: string, isGiven: boolean): Promise<void>
  /** Adds or deletes the definition of a resource. */
  setDefinition(resource: string, isThere: boolean): Promise<void>
  close(): Promise<void>
}

export function accessOf(origin: string, token: Token): ApiAccess {
  return {
    origin,
    prefix: '',
    serverName: undefined,
    authority: undefined,
    isInsecure: true,
    token: { kind: 'text', text: token },
    client: undefined,
  }
}

export async function fakeCluster(
  isNew: boolean,
  certificate: ServerCertificate,
): Promise<Cluster> {
  const model = new ApiModel({ hasWatchList: isNew })
  const server = new FakeApiServer(model, certificate)
  for (const { resource } of COLLECTIONS) setRight(model, resource, false)
  model.defined.delete('clusternetworkpolicies') // as in the testbed
  await server.listen()
  return {
    name: `the fake server as of ${isNew ? '1.36' : '1.20'}`,
    isNew,
    access: (token) => accessOf(server.origin, token),
    write: async (method, path, body) => await write(server.origin, method, path, body),
    compact: async () => await Promise.resolve(model.compact()),
    setRight: async (resource, isGiven) =>
      await Promise.resolve(setRight(model, resource, isGiven)),
    async setDefinition(resource, isThere) {
      if (isThere) model.defined.add(resource)
      else model.undefine(resource)
      await Promise.resolve()
    },
    close: async () => await server.close(),
  }
}

function setRight(model: ApiModel, resource: string, isGiven: boolean): void {
  for (const verb of ['list', 'watch']) {
    if (isGiven) model.denied.delete(`${verb} ${resource}`)
    else model.denied.add(`${verb} ${resource}`)
  }
}
