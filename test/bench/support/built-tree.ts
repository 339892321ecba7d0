// The program as `npm run build` makes it of the sources as they are now, in a tree of its own where nothing is newer than it,
// so that bin/namegate starts that and not the sources. Native parts are those of the checkout.

import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const PARTS = [
  'bin',
  'build/Release',
  'build/namegate.bpf.o',
  'build/namegate-gate.bpf.o',
  'package.json',
]

export class BuiltTree {
  readonly folder: string

  /** `name`: of the bench, one tree each. */
  constructor(name: string) {
    this.folder = join(ROOT, 'build', `bench-${name}`)
    this.close()
    for (const part of PARTS) cpSync(join(ROOT, part), join(this.folder, part), { recursive: true })
    const dist = join(this.folder, 'dist')
    mkdirSync(dist)
    execFileSync(process.execPath, ['scripts/bundle.mjs', dist], { cwd: ROOT })
  }

  /** Its bin/namegate. */
  get command(): string {
    return join(this.folder, 'bin/namegate')
  }

  close(): void {
    rmSync(this.folder, { recursive: true, force: true })
  }
}
