// A wall clock that a test can set, for the processes that it starts with `env`, and their children. shifted-clock.c shifts the times of
// libc. The machine's clock and the kernel's times of files stay unchanged.

import {
  chmodSync,
  closeSync,
  mkdtempSync,
  openSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { compiled } from './compiled.ts'

export const DAY_MS = 86_400_000

export class ShiftedClock {
  readonly #folder = mkdtempSync(join(tmpdir(), 'namegate-clock-'))
  readonly #library = compiled('shifted-clock', '-shared', '-fPIC', '-ldl')
  readonly #file = join(this.#folder, 'shift')
  readonly #fd = openSync(this.#file, 'w')
  readonly #shift = new BigInt64Array(1)

  constructor() {
    this.set(0)
  }

  /** The environment of a process under this clock. */
  get env(): Readonly<Record<string, string>> {
    return { LD_PRELOAD: this.#library, SHIFTED_CLOCK: this.#file }
  }

  /** A program that runs another one under this clock. */
  program(path: string): string {
    const wrapper = join(this.#folder, 'program')
    const variables = Object.entries(this.env).map(([name, value]) => `${name}='${value}'`)
    writeFileSync(wrapper, `#!/bin/sh\nexport ${variables.join(' ')}\nexec '${path}' "$@"\n`)
    chmodSync(wrapper, 0o755)
    return wrapper
  }

  /** Sets the clock to so much later or earlier than the true time. Running processes see the change at once. */
  set(milliseconds: number): void {
    this.#shift[0] = BigInt(milliseconds)
    // Writes in place, because the file is mapped.
    writeSync(this.#fd, this.#shift, 0, 8, 0)
  }

  /** The time of this clock now. */
  now(): number {
    return Date.now() + Number(this.#shift[0])
  }

  close(): void {
    closeSync(this.#fd)
    rmSync(this.#folder, { recursive: true, force: true })
  }
}
