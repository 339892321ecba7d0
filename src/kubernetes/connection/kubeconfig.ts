// Reads a kubeconfig: the cluster and the user of its current context. Other contexts are not read, so they can have what namegate does not
// support. Faults have their line and column.

import { dirname, resolve } from 'node:path'
import type { Fault } from '../../core/errors.ts'
import { parseDocument } from '../../documents/quick-documents.ts'
import { Reader, suggestion, type FieldTable } from '../../documents/source-document.ts'
import { splitServer, type AccessResult, type ApiAccess, type Material } from './access.ts'

const PLUGIN =
  'is not supported: namegate runs no credential plugins; use a token, a tokenFile or a client certificate'
const PASSWORD =
  'is not supported: the API server takes no passwords; use a token or a client certificate'
const PROXY = 'is not supported: namegate connects to the API server without a proxy'
const OTHER_USER = 'is not supported: give the rights to the user itself'

const FILE: FieldTable = new Map([
  ['apiVersion', true],
  ['kind', true],
  ['preferences', true],
  ['extensions', true],
  ['clusters', true],
  ['users', true],
  ['contexts', true],
  ['current-context', true],
])
const CONTEXT: FieldTable = new Map([
  ['cluster', true],
  ['user', true],
  ['namespace', true],
  ['extensions', true],
])
const CLUSTER: FieldTable = new Map<string, true | string>([
  ['server', true],
  ['tls-server-name', true],
  ['certificate-authority', true],
  ['certificate-authority-data', true],
  ['insecure-skip-tls-verify', true],
  ['disable-compression', true],
  ['extensions', true],
  ['proxy-url', PROXY],
])
const USER: FieldTable = new Map<string, true | string>([
  ['token', true],
  ['tokenFile', true],
  ['client-certificate', true],
  ['client-certificate-data', true],
  ['client-key', true],
  ['client-key-data', true],
  ['extensions', true],
  ['exec', PLUGIN],
  ['auth-provider', PLUGIN],
  ['username', PASSWORD],
  ['password', PASSWORD],
  ['as', OTHER_USER],
  ['as-uid', OTHER_USER],
  ['as-groups', OTHER_USER],
  ['as-user-extra', OTHER_USER],
])

type Fields = ReadonlyMap<string, Reader>

/** Reads the text of a kubeconfig. Paths in it start at the directory of `file`. Never throws, whatever the text. */
export function parseKubeconfig(text: string, file: string): AccessResult {
  const { document, faults: syntax } = parseDocument(text, file)
  const faults: Fault[] = [...syntax]
  if (document === undefined) return { kind: 'faults', faults }
  const access = readFile(new Reader(document, { faults }), dirname(file))
  if (access === undefined || faults.length > 0) return { kind: 'faults', faults }
  return { kind: 'access', access }
}

function readFile(reader: Reader, folder: string): ApiAccess | undefined {
  const fields = reader.fields(FILE)
  if (fields === undefined) return undefined
  const current = fields.get('current-context')
  if (current === undefined) return reader.fault('found no current-context, expected one')
  const context = named(reader, fields, 'contexts', current)?.fields(CONTEXT)
  const clusterName = context?.get('cluster')
  const userName = context?.get('user')
  if (context === undefined) return undefined
  if (clusterName === undefined) return current.fault('found no cluster in this context')
  const cluster = named(reader, fields, 'clusters', clusterName)?.fields(CLUSTER)
  const user =
    userName === undefined ? new Map() : named(reader, fields, 'users', userName)?.fields(USER)
  const server = cluster?.get('server')
  if (cluster === undefined || user === undefined) return undefined
  if (server === undefined) return clusterName.fault('found no server in this cluster')
  return readAccess(server, cluster, user, folder)
}

function readAccess(
  server: Reader,
  cluster: Fields,
  user: Fields,
  folder: string,
): ApiAccess | undefined {
  const what = 'an https address, such as https://10.96.0.1:443'
  const text = server.text(what)
  const place = text === undefined ? undefined : splitServer(text)
  if (place === undefined) return text === undefined ? undefined : server.expected(what)
  const token = user.get('token')?.text()
  const file = user.get('tokenFile')?.text()
  const written = token === undefined ? undefined : textOf(token)
  return {
    ...place,
    serverName: cluster.get('tls-server-name')?.text(),
    authority: material(cluster, 'certificate-authority', folder),
    isInsecure: cluster.get('insecure-skip-tls-verify')?.flag() ?? false,
    // As with kubectl, the file is used if there are both, because it can be renewed.
    token: file === undefined ? written : { kind: 'file', path: resolve(folder, file) },
    client: readClient(user, folder),
  }
}

function readClient(user: Fields, folder: string): ApiAccess['client'] {
  const certificate = material(user, 'client-certificate', folder)
  const key = material(user, 'client-key', folder)
  if (certificate !== undefined && key !== undefined) return { certificate, key }
  const alone = [...user].find(([name]) => name.startsWith('client-'))?.[1]
  if (certificate !== undefined) return alone?.fault('can not stand without client-key', 'key')
  if (key !== undefined) return alone?.fault('can not stand without client-certificate', 'key')
  return undefined
}

/** Reads `NAME-data`, which is base64, or the path `NAME`. As with kubectl, the data is used if there are both. */
function material(fields: Fields, name: string, folder: string): Material | undefined {
  const data = fields.get(`${name}-data`)
  const text = data?.text('base64')
  if (data !== undefined && text !== undefined) {
    const isBase64 = /^[A-Za-z0-9+/\s]+={0,2}\s*$/.test(text)
    return isBase64 ? textOf(Buffer.from(text, 'base64').toString()) : data.expected('base64')
  }
  const path = fields.get(name)?.text('a path')
  return path === undefined ? undefined : { kind: 'file', path: resolve(folder, path) }
}

function textOf(text: string): Material {
  return { kind: 'text', text }
}

const INSIDE = new Map([
  ['contexts', 'context'],
  ['clusters', 'cluster'],
  ['users', 'user'],
])

/** Finds the entry of a list by its name. Other entries are not read. */
function named(top: Reader, fields: Fields, list: string, name: Reader): Reader | undefined {
  const wanted = name.text()
  if (wanted === undefined) return undefined
  const names: string[] = []
  for (const item of fields.get(list)?.items() ?? []) {
    const parts = new Map(item.entries())
    const found = parts.get('name')?.text()
    if (found === undefined) continue
    if (found === wanted) {
      const inside = parts.get(INSIDE.get(list) ?? '')
      return inside ?? item.fault(`found no ${INSIDE.get(list)}, expected one`)
    }
    names.push(found)
  }
  const hint = suggestion(wanted, names)
  return (names.length === 0 ? top : name).fault(
    `found no ${JSON.stringify(wanted)} in ${list}${hint}`,
  )
}
