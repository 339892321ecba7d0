// Finds the files that a supervisor gives to the daemon as credentials (systemd: LoadCredential=). The configuration names such a file
// `credential:NAME` in place of a path. Only the processes of the service can read the folder of the credentials.

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Fault } from '../core/errors.ts'
import type { SourceDocument, SourcePath } from '../documents/source-document.ts'
import { pathFrom } from './files.ts'
import type { ConfigValues } from './schema.ts'

/** The environment variable with the folder of the credentials. */
export const CREDENTIALS_VARIABLE = 'CREDENTIALS_DIRECTORY'

const PREFIX = 'credential:'

/**
 * Where credentials are: a folder, or `''` if this process has none, so that every credential is a fault. Undefined in a command that does
 * not read the files: their names stay as they are.
 */
export type CredentialFolder = string | undefined

type Page = ConfigValues['admin']['page']

/** Returns the path of a file that the configuration names, which starts at the folder of `file`, or is in the folder of the credentials. */
export function credentialOrPath(file: string, text: string, folder: CredentialFolder): string {
  if (!text.startsWith(PREFIX)) return pathFrom(file, text)
  return folder === undefined ? text : join(folder, text.slice(PREFIX.length))
}

/** Reports each credential that is not in the folder. */
export function credentialFaults(
  document: SourceDocument,
  page: Page,
  folder: CredentialFolder,
): readonly Fault[] {
  if (folder === undefined) return []
  return credentialsOf(page).flatMap(([path, name]) => {
    if (folder !== '' && existsSync(join(folder, name))) return []
    const reason =
      folder === '' ? `$${CREDENTIALS_VARIABLE} is not set` : `${folder} has no ${name}`
    const remedy = `expected LoadCredential=${name}:FILE in the systemd unit, and a restart of the unit`
    const message = `${path.join('.')}: found ${PREFIX}${name}, but ${reason}: ${remedy}`
    return [{ position: document.positionOf(path), message }]
  })
}

/** The keys that name a credential, with its name. */
function credentialsOf(page: Page): readonly (readonly [path: SourcePath, name: string])[] {
  const texts: readonly (readonly [SourcePath, string | undefined])[] = [
    [['token-file'], page?.tokenFile],
    [['tls', 'certificate'], page?.tls?.certificate],
    [['tls', 'key'], page?.tls?.key],
    [['tls', 'client-ca'], page?.tls?.clientCa],
  ]
  return texts.flatMap(([key, text = '']) =>
    text.startsWith(PREFIX)
      ? [[['admin', 'page', ...key], text.slice(PREFIX.length)] as const]
      : [],
  )
}
