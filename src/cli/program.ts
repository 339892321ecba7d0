// `program` returns the word that starts this program, for commands that a person copies.

import { join } from 'node:path'
import { packageRoot } from '../native/native-files.ts'
import { isInstalled } from '../sandbox/helper.ts'

/** Returns `namegate`, or its path if it is not on the PATH. */
export function program(): string {
  return isInstalled('namegate') ? 'namegate' : join(packageRoot(), 'bin/namegate')
}
