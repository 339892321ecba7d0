// Makes a Config of the values of a file: adds positions to the values in which other parts can find faults, and resolves paths against the
// folder of the file. load.ts calls it.

import type { Fault } from '../core/errors.ts'
import { SOCKET_PATH_MAX } from '../core/socket-address.ts'
import type { SourceDocument, SourcePath } from '../documents/source-document.ts'
import type { Config, PlacedPath } from './config.ts'
import { credentialOrPath, type CredentialFolder } from './credentials.ts'
import { pathFrom } from './files.ts'
import type { ConfigValues } from './schema.ts'

export function placeConfig(
  document: SourceDocument,
  file: string,
  values: ConfigValues,
  credentials: CredentialFolder,
): Config {
  const placed = <Item extends object>(items: readonly Item[], at: SourcePath) =>
    items.map((item, i) => ({ ...item, position: document.positionOf([...at, i]) }))
  const paths = (texts: readonly string[], at: SourcePath): readonly PlacedPath[] =>
    placed(
      texts.map((path) => ({ path: pathFrom(file, path) })),
      at,
    )
  const { upstreams, policies, endpoints, resources, datapath, state, admin, kubernetes } = values
  return {
    ...values,
    file,
    listeners: placed(values.listeners, ['listeners']),
    upstreams: { ...upstreams, servers: placed(upstreams.servers, ['upstreams', 'servers']) },
    policies: { ...policies, paths: paths(policies.paths, ['policies', 'paths']) },
    endpoints: { ...endpoints, files: paths(endpoints.files, ['endpoints', 'files']) },
    resources: { files: paths(resources.files, ['resources', 'files']) },
    ...(kubernetes?.kubeconfig && {
      kubernetes: { ...kubernetes, kubeconfig: pathFrom(file, kubernetes.kubeconfig) },
    }),
    datapath: { ...datapath, pinPath: pathFrom(file, datapath.pinPath) },
    state: { ...state, directory: pathFrom(file, state.directory) },
    admin: {
      socket: pathFrom(file, admin.socket),
      ...placedPage(admin.page, (text) => credentialOrPath(file, text, credentials)),
    },
  }
}

type PageValues = ConfigValues['admin']['page']

function placedPage(page: PageValues, place: (text: string) => string): { page?: PageValues } {
  if (page === undefined) return {}
  const { tokenFile, tls } = page
  const path = (text: string | undefined) => (text === undefined ? undefined : place(text))
  return {
    page: {
      ...page,
      tokenFile: path(tokenFile),
      tls: tls && {
        certificate: place(tls.certificate),
        key: place(tls.key),
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
