// `policyWarnings` finds policies of `namegate up` that probably allow less than their author meant: they select nothing, or they never let a
// name be asked. The texts are those of `policy lint`. The daemon starts all the same, and refuses what no policy allows.

import type { Config } from '../../config/config.ts'
import { formatFault } from '../../core/errors.ts'
import type { LintCode } from '../../lint/finding.ts'
import { lint } from '../../lint/lint.ts'
import { namesOfRules } from '../../lint/written-names.ts'
import { IdentityLabels } from '../../policy/identity-labels.ts'
import { goodItems, readEndpoints, readPolicies } from '../policy/read-policies.ts'

/** The findings with which a workload reaches less than its policies seem to allow. */
const CODES: ReadonlySet<LintCode> = new Set(['never-matches', 'selects-nothing', 'never-asked'])

/**
 * Returns the warnings, one a line. Throws InvalidInputError if a file has a fault. `paths`: all policies of the daemon, with the list of
 * --allow. `endpoints`: the endpoints file.
 */
export function policyWarnings(
  paths: readonly string[],
  endpoints: string,
  config: Config,
): readonly string[] {
  const policies = goodItems(readPolicies(paths, config.policies))
  const identityLabels = new IdentityLabels(config.endpoints.identityLabels, config.clusterName)
  const workloads = goodItems(readEndpoints([endpoints]))
  const found = lint({
    policies,
    names: policies.map(namesOfRules),
    endpoints: workloads.map(({ labels }) => identityLabels.of(labels)),
    aliases: undefined,
    withoutRules: 'deny',
    portable: false,
    notes: [],
  }).filter(({ code }) => CODES.has(code))
  const lines = found.map(({ position, code, message, remedy }) =>
    formatFault({ position, message: `${code}: ${message}; ${remedy}` }),
  )
  const isUnselected = found.some(({ code }) => code === 'selects-nothing')
  const labels = new Set(workloads.flatMap((each) => each.labels.map(withoutSource)))
  return isUnselected ? [...lines, `the workload has the label ${[...labels].join(', ')}`] : lines
}

/** Returns `app=box` for `external:app=box`, as a policy selects it. */
function withoutSource(label: string): string {
  return label.slice(label.indexOf(':') + 1)
}
