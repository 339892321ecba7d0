// Makes a Config of the values of a file: adds positions to the values in which other parts can find faults, and resolves paths against the
// folder of the file. load.ts calls it.

import type { Fault } from '../core/errors.ts'
import { SOCKET_PATH_MAX } from '../core/socket-address.ts'
import type { SourceDocument, SourcePath } from '../documents/source-document.ts'
import type { Config, PlacedPath } from './config.ts'
import { pathFrom } from './files.ts'
import type { ConfigValues } from './schema.ts'

export function placeConfig(document: SourceDocument, file: string, values: ConfigValues): Config {
  const placed = <Item extends object>(items: readonly Item[], at: SourcePath) =>
    items.map((item, i) => ({ ...item, position: document.positionOf([...at, i]) }))
  const paths = (texts: readonly string[], at: SourcePath): readonly PlacedPath[] =>
    placed(
      texts.map((path) => ({ path: pathFrom(file, path) })),
      at,
    )
  const { upstreams, policies, endpoints, resources, datapath, state, admin } = values
  return {
    ...values,
    file,
    listeners: placed(values.listeners, ['listeners']),
    upstreams: { ...upstreams, servers: placed(upstreams.servers, ['upstreams', 'servers']) },
    policies: { ...policies, paths: paths(policies.paths, ['policies', 'paths']) },
    endpoints: { ...endpoints, files: paths(endpoints.files, ['endpoints', 'files']) },
    resources: { files: paths(resources.files, ['resources', 'files']) },
    datapath: { ...datapath, pinPath: pathFrom(file, datapath.pinPath) },
    state: { ...state, directory: pathFrom(file, state.directory) },
    admin: { socket: pathFrom(file, admin.socket), ...placedPage(file, admin.page) },
  }
}

function placedPage(file: string, page: ConfigValues['admin']['page']): { page?: typeof page } {
  if (page === undefined) return {}
  const { tokenFile, tls } = page
  const path = (text: string | undefined) => (text === undefined ? undefined : pathFrom(file, text))
  return {
    page: {
      ...page,
      tokenFile: path(tokenFile),
      tls: tls && {
        certificate: pathFrom(file, tls.certificate),
        key: pathFrom(file, tls.key),
        clientCa: path(tls.clientCa),
      },
    },
  }
}

/** Reports an admin socket path that is too long. The schema cannot check this, because the length of the resolved path decides. */
export function socketFaults(document: SourceDocument, { admin }: Config): readonly Fault[] {
  const octets = Buffer.byteLength(admin.socket)
  if (octets <= SOCKET_PATH_MAX) return []
  const message = `admin.socket: found a path of ${octets} octets, expected at most ${SOCKET_PATH_MAX}`
  return [{ position: document.positionOf(['admin', 'socket']), message }]
}
