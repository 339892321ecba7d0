// Policies from files: a file is read by itself, and a policy that two files have is a fault of both together.

import { formatFault, formatPlace, type Fault, type Position } from '../../core/errors.ts'
import type { Config, PoliciesConfig } from '../../config/config.ts'
import { loadPolicies, type LoadOptions } from '../../policy/load/load.ts'
import type { Policy } from '../../policy/rule.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Parsed, SourceFile } from './source-files.ts'

/** A policy file for those who show it. */
export interface PolicyFile extends Pick<SourceFile<Policy>, 'path' | 'state' | 'faults'> {
  /** In force: of the file as it is, or of its last good version. */
  readonly policies: readonly Policy[]
}

/** How the config wants policies read. */
export function readingOf(config: PoliciesConfig): LoadOptions {
  const { ingress, unsupportedFields, allowListEndpoints } = config
  return { ingress, unsupportedFields, allowListEndpoints }
}

/** Reads one file; `onWarning` is told of what is left out of it (`policies.unsupported-fields: warn`). */
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

/** Reads files as the config wants it; what is left out of one is told. */
export function policyReader(
  config: Config,
  log: Log,
): (text: string, file: string) => Parsed<Policy> {
  const reading = readingOf(config.policies)
  const onWarning = (warning: Fault): void =>
    log.warn({ fault: formatFault(warning) }, 'left out of a policy, which allows less')
  return (text, file) => parsePolicyFile(text, file, reading, onWarning)
}

/** Policies that several files have: the later one is the fault. */
export function repeatedPolicies(policies: readonly Policy[]): readonly Fault[] {
  const first = new Map<string, Position>()
  const faults: Fault[] = []
  for (const policy of policies) {
    const { position } = policy
    const key = keyOf(policy)
    if (key === undefined) continue
    const before = first.get(key)
    if (before === undefined) first.set(key, position)
    // Several specs of one document share its name; twice in one file was found when it was read.
    if (before === undefined || before.file === position.file) continue
    const message = `found the ${key} again, first at ${formatPlace(before)}`
    faults.push({ position, message })
  }
  return faults
}

/** Whether a file has no policy that it had not before, so that no other file can have a new one of its too. */
export function hasNoOther(after: readonly Policy[], before: readonly Policy[]): boolean {
  const keys = new Set(before.map(keyOf))
  return after.every((policy) => keys.has(keyOf(policy)) || keyOf(policy) === undefined)
}

/** Undefined: the name of an allow-list is its file's, and files in two folders may share it. */
function keyOf({ kind, namespace, name }: Policy): string | undefined {
  if (kind === 'AllowList') return undefined
  return `${kind} ${namespace === undefined ? '' : `${namespace}/`}${name}`
}
