// `readWorld` reads what commands need to judge policies without a daemon: configuration, policies, endpoints and resources. Options or the
// configuration name the files.

import { existsSync } from 'node:fs'
import type { Config, PlacedPath } from '../../config/config.ts'
import { defaultConfig, loadConfig } from '../../config/load.ts'
import { parseAddress } from '../../core/ip.ts'
import type { CommandOutput, ParsedArguments } from '../command.ts'
import { namedConfigFile } from '../config-file.ts'
import type { OfflineInput } from './offline-node.ts'
import { goodItems, readEndpoints, readPolicies, readResources } from './read-policies.ts'

/** Everything that an OfflineNode needs, except the endpoints that questions are about. */
export interface World extends Omit<OfflineInput, 'askers'> {
  /** The configuration file. If undefined, the built-in defaults apply. */
  readonly configFile: string | undefined
  /** Files of endpoints and resources that the configuration names and that do not exist. */
  readonly missing: readonly string[]
}

/** Returns the paths of --policies and of further arguments. So `--policies a b` means the same as `--policies a --policies b`. */
export function policyPaths({ lists, positionals }: ParsedArguments): readonly string[] {
  return [...(lists.get('policies') ?? []), ...positionals]
}

/**
 * Reads everything except the questions. `paths`: policy files and folders. Returns the fault as text if an option is wrong. Throws
 * InvalidInputError with the faults of files.
 */
export function readWorld(
  { texts, lists }: ParsedArguments,
  paths: readonly string[],
): World | string {
  const nodeAddresses = (lists.get('node') ?? []).map((text) => ({
    text,
    prefix: parseAddress(text),
  }))
  const wrong = nodeAddresses.find(({ prefix }) => prefix === undefined)
  if (wrong !== undefined) return `--node: found ${JSON.stringify(wrong.text)}, expected an address`
  const configFile = namedConfigFile(texts.get('config'))
  const config = configFile === undefined ? defaultConfig() : loadConfig(configFile)
  const missing: string[] = []
  const filesOf = (option: string, configured: readonly PlacedPath[]): readonly string[] =>
    lists.get(option) ?? (configFile === undefined ? [] : present(configured, missing))
  return {
    config,
    configFile,
    policies: goodItems(readPolicies(paths, config.policies)),
    endpoints: goodItems(readEndpoints(filesOf('endpoints', config.endpoints.files))),
    resources: goodItems(readResources(filesOf('resources', config.resources.files))),
    nodeAddresses: nodeAddresses.flatMap(({ prefix }) => prefix ?? []),
    missing,
  }
}

/** Returns the files that exist, and adds the paths of missing files to `missing`. A missing file is not a fault, as in the daemon. */
function present(files: readonly PlacedPath[], missing: string[]): readonly string[] {
  return files.flatMap(({ path }) => {
    if (existsSync(path)) return [path]
    missing.push(path)
    return []
  })
}

/** Tells the user on stderr whether the built-in defaults apply, and which configured files do not exist, because both change verdicts. */
export function noteWorld(
  { config, configFile, endpoints, resources, missing }: World,
  output: CommandOutput,
): void {
  for (const path of missing) output.stderr(`namegate: ${path} does not exist and is left out\n`)
  if (configFile !== undefined) return
  const known = `${endpoints.length} endpoints and ${resources.length} resources are known`
  output.stderr(`namegate: no --config: ${formatDefaults(config)} apply; ${known}\n`)
}

function formatDefaults({ defaultEgress, dns }: Config): string {
  return `default-egress ${defaultEgress} and dns.without-rules ${dns.withoutRules}`
}
