// What a command judges policies in without a daemon: config, policies, endpoints and resources from what its options name.

import type { Config } from '../../config/config.ts'
import { defaultConfig, loadConfig } from '../../config/load.ts'
import { parseAddress } from '../../core/ip.ts'
import type { CommandOutput, ParsedArguments } from '../command.ts'
import type { OfflineInput } from './offline-node.ts'
import { goodItems, readEndpoints, readPolicies, readResources } from './read-policies.ts'

export type World = Omit<OfflineInput, 'askers'>

/** `--policies a b` and `--policies a --policies b` are the same. */
export function policyPaths({ lists, positionals }: ParsedArguments): readonly string[] {
  return [...(lists.get('policies') ?? []), ...positionals]
}

/** Everything but the questions, or what is wrong; throws InvalidInputError with the faults of files. */
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
  const file = texts.get('config')
  const config = file === undefined ? defaultConfig() : loadConfig(file)
  return {
    config,
    policies: goodItems(readPolicies(paths, config.policies)),
    endpoints: goodItems(readEndpoints(lists.get('endpoints') ?? [])),
    resources: goodItems(readResources(lists.get('resources') ?? [])),
    nodeAddresses: nodeAddresses.flatMap(({ prefix }) => prefix ?? []),
  }
}

/** Says which defaults hold where no config was named, and what is known then, because verdicts rest on it. */
export function noteDefaults(
  { texts }: ParsedArguments,
  { config, endpoints, resources }: World,
  output: CommandOutput,
): void {
  if (texts.has('config')) return
  const known = `${endpoints.length} endpoints and ${resources.length} resources are known`
  output.stderr(`namegate: no --config: ${formatDefaults(config)} hold; ${known}\n`)
}

function formatDefaults({ defaultEgress, dns }: Config): string {
  return `default-egress ${defaultEgress} and dns.without-rules ${dns.withoutRules}`
}
