// Reads the configuration file as a Config. All faults of the file are reported at once, each with its position. A file with a fault is not
// used. The result is frozen, because every part of the program reads it.

import { z } from 'zod'
import { InvalidInputError, type Fault } from '../core/errors.ts'
import { formatAddress } from '../core/ip.ts'
import { objectDocument } from '../documents/object-source.ts'
import type { SourceDocument } from '../documents/source-document.ts'
import type { Config, ListenerConfig } from './config.ts'
import { credentialFaults, CREDENTIALS_VARIABLE, type CredentialFolder } from './credentials.ts'
import { byPlace, toFaults } from './faults.ts'
import { readTextFile } from './files.ts'
import { ownAddresses } from './machine.ts'
import { placeConfig, socketFaults } from './placed.ts'
import { configSchema } from './schema.ts'
import { resolveUpstreams, type IsOwnAddress } from './upstreams.ts'
import { parseYamlDocument } from '../documents/yaml-source.ts'

/** Reads and checks a file. Throws InvalidInputError with all faults of the file. */
export function loadConfig(file: string, credentials?: CredentialFolder): Config {
  const read = readTextFile(file)
  if (read.kind === 'bad') throw new InvalidInputError([read.fault])
  return parseConfig(read.text, file, ownAddresses(), credentials)
}

/** Checks a text. Faults give `file` as the name of the text. Throws InvalidInputError with all faults. */
export function parseConfig(
  text: string,
  file: string,
  isOwn: IsOwnAddress = ownAddresses(),
  credentials?: CredentialFolder,
): Config {
  const { document, faults } = parseYamlDocument(text, file)
  if (document === undefined) throw new InvalidInputError(faults)
  return checkConfig(document, file, isOwn, credentials)
}

/** Checks and copies an object with the keys of the file. Faults give `name` as its name. Throws InvalidInputError with all faults. */
export function configFromObject(
  value: unknown,
  name = 'config',
  isOwn: IsOwnAddress = ownAddresses(),
  credentials: CredentialFolder = process.env[CREDENTIALS_VARIABLE] ?? '',
): Config {
  const { document, faults } = objectDocument(value, name)
  if (faults.length > 0) throw new InvalidInputError(faults)
  return checkConfig(document, name, isOwn, credentials)
}

function checkConfig(
  document: SourceDocument,
  file: string,
  isOwn: IsOwnAddress,
  credentials: CredentialFolder,
): Config {
  const given = document.value === null ? {} : document.value
  const parsed = configSchema.safeParse(given)
  if (!parsed.success) {
    throw new InvalidInputError(toFaults(configSchema, document, parsed.error.issues))
  }
  const config = placeConfig(document, file, parsed.data, credentials)
  const { listeners, upstreams } = config
  const servers = upstreams.servers.filter(({ kind }) => kind === 'address')
  const looped = resolveUpstreams(servers, listeners, isOwn, () => []).faults
  const all = [
    ...socketFaults(document, config),
    ...credentialFaults(document, parsed.data.admin.page, credentials),
    ...equalListeners(listeners),
    ...looped,
  ]
  if (all.length > 0) throw new InvalidInputError(all.sort(byPlace))
  deepFreeze(config)
  return config
}

/** The configuration that an empty file in the working directory would give. */
export function defaultConfig(): Config {
  return parseConfig('', 'built-in', () => false)
}

/** The JSON Schema (draft 2020-12) of the file. */
export function configJsonSchema(): unknown {
  return z.toJSONSchema(configSchema, { io: 'input' })
}

/** If two listeners have the same address and port, the second is a fault. Port 0 is another port for each listener. */
function equalListeners(listeners: readonly ListenerConfig[]): readonly Fault[] {
  const listenersBefore = new Map<string, ListenerConfig>()
  const faults: Fault[] = []
  for (const [i, listener] of listeners.entries()) {
    const { address, port, position } = listener
    const where = address === undefined ? '*' : formatAddress(address.family, address.octets)
    const before = listenersBefore.get(`${where} ${port}`)
    if (before !== undefined && port !== 0) {
      const { line } = before.position
      const first = line === 0 ? 'in another listener' : `on line ${line}`
      const message = `listeners[${i}]: found the same address and port as ${first}`
      faults.push({ position, message })
    }
    listenersBefore.set(`${where} ${port}`, before ?? listener)
  }
  return faults
}

/** Freezes plain objects and lists at every depth. Octets and maps cannot be frozen. */
function deepFreeze(value: unknown): void {
  if (typeof value !== 'object' || value === null) return
  if (ArrayBuffer.isView(value) || value instanceof Map) return
  Object.values(value).forEach(deepFreeze)
  Object.freeze(value)
}
