// This file appends namegate-cni to a network configuration of the node. The result is a copy: the node's own file is never changed. The
// copy keeps the name of the network, because address management and the runtime keep their state by this name.

import { InvalidInputError, messageOf } from '../../core/errors.ts'

export const PLUGIN = 'namegate-cni'
/** The versions that namegate-cni reads (src/cni/network.h). Older versions have no chains. */
const VERSIONS = ['0.3.0', '0.3.1', '0.4.0', '1.0.0', '1.1.0']

/** The keys of namegate-cni in the network configuration. A key that is missing has its default. */
export interface PluginKeys {
  readonly socket?: string
  readonly 'on-failure'?: string
  readonly 'timeout-seconds'?: number
}

/** A file of the node's folder of network configurations. */
export interface NetworkFile {
  readonly path: string
  readonly text: string
}

type JsonObject = Readonly<Record<string, unknown>>

/** Returns the text of the chain of the file's plugins and namegate-cni. Throws InvalidInputError. */
export function chainOf(file: NetworkFile, keys: PluginKeys): string {
  const found = parse(file)
  const list = file.path.endsWith('.conflist') ? found : listOfOne(found)
  const plugins = pluginsOf(file, list)
  if (plugins.some(({ type }) => type === PLUGIN)) {
    refuse(file, `plugins: ${PLUGIN} is there already: remove it there, or do not install it here`)
  }
  if (typeof list['name'] !== 'string' || list['name'] === '') {
    refuse(file, 'name: expected the name of the network')
  }
  const version = list['cniVersion']
  if (typeof version !== 'string' || !VERSIONS.includes(version)) {
    const known = VERSIONS.join(', ')
    refuse(file, `cniVersion: found ${JSON.stringify(version)}, expected one of ${known}`)
  }
  const chain = { ...list, plugins: [...plugins, { type: PLUGIN, ...keys }] }
  return `${JSON.stringify(chain, undefined, 2)}\n`
}

function parse(file: NetworkFile): JsonObject {
  try {
    const value: unknown = JSON.parse(file.text)
    if (isObject(value)) return value
  } catch (error) {
    refuse(file, `expected JSON: ${messageOf(error)}`)
  }
  return refuse(file, 'expected an object of JSON')
}

/** A file with a single plugin, as a list. */
function listOfOne(plugin: JsonObject): JsonObject {
  const { cniVersion, name } = plugin
  return { cniVersion, name, plugins: [plugin] }
}

function pluginsOf(file: NetworkFile, list: JsonObject): readonly JsonObject[] {
  const plugins: unknown = list['plugins']
  if (!Array.isArray(plugins) || plugins.length === 0) {
    return refuse(file, 'plugins: expected a list with at least one plugin')
  }
  return plugins.map((plugin: unknown, index) => {
    if (isObject(plugin) && typeof plugin['type'] === 'string') return plugin
    return refuse(file, `plugins[${index}]: expected an object with a type`)
  })
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function refuse({ path }: NetworkFile, message: string): never {
  throw new InvalidInputError([{ position: { file: path, line: 0, column: 0 }, message }])
}
