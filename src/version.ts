// Reads the version of this program from package.json.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { packageRoot } from './native/native-files.ts'

export const VERSION: string = readVersion()

function readVersion(): string {
  const text = readFileSync(join(packageRoot(), 'package.json'), 'utf8')
  return /"version":\s*"([^"]+)"/.exec(text)?.[1] ?? 'unknown'
}
