// Reads policy files with the options of the configuration. If two files have the same policy, the later file has a fault.

import { formatFault, formatPlace, type Fault, type Position } from '../../core/errors.ts'
import type { Config, PoliciesConfig } from '../../config/config.ts'
import { loadPolicies, loadPolicyObjects, type LoadOptions } from '../../policy/load/load.ts'
import type { Policy } from '../../policy/rule.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Parsed, SourceFile } from './source-files.ts'

/** A policy file as views show it. */
export interface PolicyFile extends Pick<SourceFile<Policy>, 'path' | 'state' | 'faults'> {
  /** The policies in force: of the present file, or of its last good version. */
  readonly policies: readonly Policy[]
}

/** The options of the policy loader that the configuration sets. */
export function readingOf(config: PoliciesConfig): LoadOptions {
  const { ingress, unsupportedFields, allowListEndpoints, cidrMatchesEndpoints } = config
  return { ingress, unsupportedFields, allowListEndpoints, cidrMatchesEndpoints }
}

/** Reads one file. `onWarning` receives each field that is left out of a policy (`policies.unsupported-fields: warn`). */
export function parsePolicyFile(
  text: string,
  file: string,
  options: LoadOptions = {},
  onWarning: (warning: Fault) => void = () => undefined,
): Parsed<Policy> {
  const { policies, faults, warnings } = loadPolicies(text, file, options)
  for (const warning of warnings) onWarning(warning)
  return { items: policies, faults }
}

/** Returns a reader that logs each field that it leaves out. */
export function policyReader(
  config: Config,
  log: Log,
): (text: string, file: string) => Parsed<Policy> {
  const reading = readingOf(config.policies)
  return (text, file) => parsePolicyFile(text, file, reading, (warning) => logLeftOut(log, warning))
}

/** Of a policy of files, a view says that its ingress half is not enforced. The cluster's network plugin enforces that half of its own. */
function withoutHalf(policy: Policy): Policy {
  const { halfEnforced, ...whole } = policy
  return halfEnforced === undefined ? policy : whole
}

function logLeftOut(log: Log, warning: Fault): void {
  log.warn({ fault: formatFault(warning) }, 'left out of a policy, which allows less')
}

/**
 * Returns a reader of the documents of a cluster's policies. The rules for ingress are left out, because the cluster's network plugin
 * enforces them.
 */
export function policyObjectReader(
  config: Config,
  log: Log,
): (document: unknown, name: string) => Parsed<Policy> {
  const reading: LoadOptions = { ...readingOf(config.policies), ingress: 'ignore' }
  return (document, name) => {
    const { policies, faults, warnings } = loadPolicyObjects(document, name, reading)
    for (const warning of warnings) logLeftOut(log, warning)
    return { items: policies.map(withoutHalf), faults }
  }
}

/** Faults for policies that several files have. */
export function repeatedPolicies(policies: readonly Policy[]): readonly Fault[] {
  const first = new Map<string, Position>()
  const faults: Fault[] = []
  for (const policy of policies) {
    const { position } = policy
    const key = policyKey(policy)
    if (key === undefined) continue
    const before = first.get(key)
    if (before === undefined) first.set(key, position)
    // The specs of one document share its name. The loader finds a policy that is twice in one file.
    if (before === undefined || before.file === position.file) continue
    const message = `found the ${key} again, first at ${formatPlace(before)}`
    faults.push({ position, message })
  }
  return faults
}

/**
 * Names a policy, which only one file can have. Undefined for an allow-list: its name comes from its file, and files in two folders can
 * have the same name.
 */
export function policyKey({ kind, namespace, name }: Policy): string | undefined {
  if (kind === 'AllowList') return undefined
  return `${kind} ${namespace === undefined ? '' : `${namespace}/`}${name}`
}
