// The program that `npm run build` makes of the present sources, in a tree of its own where no file is newer than it, so that bin/namegate
// starts the program and not the sources. Native parts are those of the checkout.

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

  /** `name`: the name of the bench. Each has its own tree. */
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
