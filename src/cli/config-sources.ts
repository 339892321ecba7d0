// `checkSources` reads the policies, endpoints and resources that a configuration names, for `config check`, in the same way as the daemon.

import { existsSync } from 'node:fs'
import type { Config, PlacedPath } from '../config/config.ts'
import { findPolicyFiles } from '../config/files.ts'
import type { Fault } from '../core/errors.ts'
import { missingFault } from '../sources/files/settled-files.ts'
import { readEndpoints, readPolicies, readResources, uniqueFaults } from './policy/read-policies.ts'

/** Returns the faults for which a daemon without last good versions of the files would refuse to start. */
export function checkSources({ policies, endpoints, resources }: Config): readonly Fault[] {
  const missing: Fault[] = []
  const thereOf = (placed: readonly PlacedPath[]): readonly string[] => {
    const absent = placed.filter(({ path }) => !existsSync(path))
    missing.push(...absent.map(missingFault))
    return placed.filter((each) => !absent.includes(each)).map(({ path }) => path)
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
  return uniqueFaults([...missing, ...read.flatMap((each) => each.faults)])
}
