// `checkSources` reads the policies, endpoints and resources that a configuration names, for `config check`, in the same way as the daemon.

import { existsSync } from 'node:fs'
import type { Config, PlacedPath } from '../config/config.ts'
import { findPolicyFiles } from '../config/files.ts'
import type { Fault } from '../core/errors.ts'
import { readEndpoints, readPolicies, readResources, uniqueFaults } from './policy/read-policies.ts'

export interface CheckedSources {
  readonly faults: readonly Fault[]
  /** Configured paths that are not there. They are no faults: the daemon can be on another machine. */
  readonly missing: readonly string[]
}

export function checkSources({ policies, endpoints, resources }: Config): CheckedSources {
  const missing: string[] = []
  const thereOf = (placed: readonly PlacedPath[]): readonly string[] => {
    const paths = placed.map(({ path }) => path)
    const absent = paths.filter((path) => !existsSync(path))
    missing.push(...absent)
    return paths.filter((path) => !absent.includes(path))
  }
  const read = [
    readPolicies(thereOf(policies.paths), policies),
    ...[[endpoints, readEndpoints] as const, [resources, readResources] as const].map(
      ([{ files }, readAll]) => {
        const found = thereOf(files).map(findPolicyFiles)
        const { faults } = readAll(found.flatMap((each) => each.files))
        return { faults: [...found.flatMap((each) => each.faults), ...faults] }
      },
    ),
  ]
  const faults = read.flatMap((each) => each.faults)
  return { faults: uniqueFaults(faults), missing }
}
