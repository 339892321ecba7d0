// Checks policy files and folders as the daemon would read them, for `policy check` and `up`.

import { findPolicyFiles, readTextFile } from '../../config/files.ts'
import type { Fault, Position } from '../../core/errors.ts'
import { loadPolicies, type LoadOptions } from '../../policy/load/load.ts'

export interface Checked {
  readonly faults: readonly Fault[]
  /** Number of policies in the files without faults. */
  readonly policies: number
  /** Number of files without faults. */
  readonly files: number
  /** True if every file and folder could be read. */
  readonly isWhole: boolean
}

/** Reads and checks policy files, and the files of folders. */
export function checkPaths(paths: readonly string[], reading: LoadOptions): Checked {
  const faults: Fault[] = []
  const files = new Set<string>()
  let isWhole = true
  for (const path of paths) {
    const found = findPolicyFiles(path)
    faults.push(...found.faults)
    if (found.unread.length > 0) isWhole = false
    for (const file of found.files) files.add(file)
  }
  let policies = 0
  let good = 0
  const seen = new Map<string, Position>()
  for (const file of files) {
    const read = readTextFile(file)
    if (read.kind === 'bad') {
      faults.push(read.fault)
      isWhole = false
      continue
    }
    const loaded = loadPolicies(read.text, file, { ...reading, seen })
    policies += loaded.policies.length
    if (loaded.faults.length === 0) good++
    faults.push(...loaded.faults)
  }
  return { faults, policies, files: good, isWhole }
}
