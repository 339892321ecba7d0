// `runPolicyLint` runs `namegate policy lint`. The command reports rules that are valid, but probably not what their author meant. It reads
// only files.

import { parseYamlDocument } from '../../documents/yaml-source.ts'
import { defaultConfig, loadConfig } from '../../config/load.ts'
import type { Config } from '../../config/config.ts'
import { readTextFile } from '../../config/files.ts'
import { formatFault, InvalidInputError, type Fault } from '../../core/errors.ts'
import { Reader } from '../../documents/source-document.ts'
import { IdentityLabels } from '../../policy/identity-labels.ts'
import type { Finding } from '../../lint/finding.ts'
import type { Aliases } from '../../lint/aliases.ts'
import { lint } from '../../lint/lint.ts'
import { namesOfRules, writtenNames, type NameList } from '../../lint/written-names.ts'
import type { Policy } from '../../policy/rule.ts'
import {
  EXIT_NEGATIVE,
  EXIT_OK,
  EXIT_USAGE,
  faultsJson,
  toJson,
  type CommandOutput,
  type ParsedArguments,
} from '../command.ts'
import { namedConfigFile } from '../config-file.ts'
import { goodItems, readEndpoints, readPolicies, readResources } from './read-policies.ts'

export function runPolicyLint(read: ParsedArguments, output: CommandOutput): number {
  if (read.positionals.length === 0) {
    return read.wrong('policy lint needs at least one PATH')
  }
  try {
    return lintFiles(read, output)
  } catch (error) {
    if (!(error instanceof InvalidInputError && read.texts.has('output'))) throw error
    output.stdout(faultsJson(error.faults))
    return EXIT_USAGE
  }
}

/** Throws InvalidInputError with the faults of the files. */
function lintFiles(read: ParsedArguments, output: CommandOutput): number {
  const file = namedConfigFile(read.texts.get('config'))
  const config = file === undefined ? defaultConfig() : loadConfig(file)
  const notes: Fault[] = []
  const policies = goodItems(readPolicies(read.positionals, config.policies, notes))
  const identityLabels = new IdentityLabels(config.endpoints.identityLabels, config.clusterName)
  const files = read.lists.get('endpoints')
  const chains = read.texts.get('chains')
  const findings = lint({
    policies,
    names: namesOf(policies),
    endpoints:
      files === undefined
        ? undefined
        : goodItems(readEndpoints(files)).map(({ labels }) => identityLabels.of(labels)),
    resources: goodItems(readResources(read.lists.get('resources') ?? [])).map(
      ({ labels }) => labels,
    ),
    aliases: chains === undefined ? undefined : readChains(chains),
    withoutRules: config.dns.withoutRules,
    portable: read.flags.has('portable'),
    notes,
  })
  if (read.texts.has('output')) output.stdout(toJson(findings.map(toRow)))
  else output.stdout(findings.map(formatFinding).join(''))
  if (files === undefined) output.stderr('not checked: selects-nothing (no --endpoints)\n')
  if (chains === undefined) output.stderr('not checked: cname-target (no --chains)\n')
  return findings.length === 0 ? EXIT_OK : EXIT_NEGATIVE
}

/** True if `policy lint` has findings about the policies alone. False if a file has faults. */
export function hasFindings(paths: readonly string[], config: Config): boolean {
  const notes: Fault[] = []
  const { items, faults } = readPolicies(paths, config.policies, notes)
  if (faults.length > 0) return false
  const known = { policies: items, names: namesOf(items), notes, portable: false }
  const unknown = { endpoints: undefined, aliases: undefined }
  return lint({ ...known, ...unknown, withoutRules: config.dns.withoutRules }).length > 0
}

function namesOf(policies: readonly Policy[]): readonly NameList[] {
  const lists = policies.filter(({ kind }) => kind === 'AllowList').map(namesOfRules)
  const files = new Set<string>()
  for (const { kind, position } of policies) if (kind !== 'AllowList') files.add(position.file)
  for (const file of files) {
    const text = readTextFile(file)
    if (text.kind === 'ok') lists.push(...writtenNames(text.text, file))
  }
  return lists
}

/** Reads the file of --chains, a mapping from each name to the names in its CNAME chain. Throws InvalidInputError with its faults. */
function readChains(file: string): Aliases {
  const text = readTextFile(file)
  if (text.kind === 'bad') throw new InvalidInputError([text.fault])
  const { document, faults: syntax } = parseYamlDocument(text.text, file)
  const faults: Fault[] = [...syntax]
  const chains = new Map<string, readonly string[]>()
  if (document !== undefined && document.value !== null) {
    for (const [name, value] of new Reader(document, { faults }).entries() ?? []) {
      const targets = (value.items() ?? []).flatMap((item) => item.text('a name') ?? [])
      chains.set(plain(name), targets.map(plain))
    }
  }
  if (faults.length > 0) throw new InvalidInputError(faults)
  return chains
}

function plain(name: string): string {
  return name.toLowerCase().replace(/\.$/, '')
}

function formatFinding({ position, code, message, remedy }: Finding): string {
  return `${formatFault({ position, message: `${code}: ${message}; ${remedy}` })}\n`
}

function toRow({ position, code, message, remedy }: Finding): object {
  return { ...position, code, message, remedy }
}
