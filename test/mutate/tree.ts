// A copy of the tree in which one line at a time is changed, and in which its tests run.

import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative, resolve } from 'node:path'
import type { Mutation } from './mutation.ts'
import { LabProcess, type Output } from '../support/labs/lab-process.ts'

/**
 * Left out of the copy: folders that are linked, made again or not needed. Compiled tests name the files beside their source by
 * full path.
 */
const LEFT_OUT =
  /^(?:node_modules|\.git|dist|var|build\/(?:tools|peers|packages|oci|Sanitize|dist|tests.*))(?:\/|$)/
const BUILD_LIMIT_MS = 120_000
/** Time beyond the limit of a test file, for compiling and for ending its leftover processes. */
const RUNNER_MS = 60_000

export class Tree {
  readonly path = mkdtempSync(join(tmpdir(), 'namegate-mutate-'))
  /** Temporary files of the tests. A test that is ended leaves them. */
  readonly #temporary = join(this.path, 'tmp')
  /** Whether a C file has changed since the last build. */
  #isStale = false
  #child: LabProcess | undefined

  constructor() {
    const root = resolve('.')
    // Tests of the sandbox run programs of the copy as an ordinary user.
    chmodSync(this.path, 0o755)
    cpSync(root, this.path, {
      recursive: true,
      preserveTimestamps: true,
      filter: (source) => !LEFT_OUT.test(relative(root, source)),
    })
    symlinkSync(join(root, 'node_modules'), join(this.path, 'node_modules'))
  }

  /** Runs `act` with the line changed. Throws if there is no such line. */
  async with<T>({ file, before, after }: Mutation, act: () => Promise<T>): Promise<T> {
    const path = join(this.path, file)
    const text = readFileSync(path, 'utf8')
    const parts = text.split(before)
    if (parts.length !== 2) throw new Error(`${parts.length - 1} places have this text`)
    const write = (changed: string): void => {
      writeFileSync(path, changed)
      this.#isStale ||= /\.[ch]$/.test(file)
    }
    try {
      write(parts.join(after))
      return await act()
    } finally {
      write(text)
    }
  }

  /** Whether the tests of a file pass within the limit. They end at the first failure. Throws if the build fails. */
  async passes(test: string, limitMs: number): Promise<boolean> {
    await this.build()
    mkdirSync(this.#temporary, { recursive: true })
    chmodSync(this.#temporary, 0o1777)
    const env = {
      TMPDIR: this.#temporary,
      NAMEGATE_TEST_LIMIT: String(Math.ceil(limitMs / 1000)),
    }
    const args = ['scripts/test.mjs', '--bail', test]
    const { code } = await this.#run(process.execPath, args, limitMs + RUNNER_MS, env)
    this.#removeTemporary()
    return code === 0
  }

  /** Builds everything except TypeScript, if it has changed. */
  async build(): Promise<void> {
    if (!this.#isStale) return
    const { code, stderr } = await this.#run('sh', ['scripts/build-native.sh'], BUILD_LIMIT_MS)
    if (code !== 0) throw new Error(`it cannot be built: ${stderr.trim().slice(0, 400)}`)
    this.#isStale = false
  }

  /** Ends running processes. */
  async stop(): Promise<void> {
    await this.#child?.stop()
  }

  remove(): void {
    this.#removeTemporary()
    rmSync(this.path, { recursive: true, force: true })
  }

  /** A test that is ended can leave a mounted folder. */
  #removeTemporary(): void {
    for (const line of readFileSync('/proc/mounts', 'utf8').split('\n')) {
      const [, place = ''] = line.split(' ')
      if (place.startsWith(`${this.#temporary}/`)) execFileSync('umount', [place])
    }
    rmSync(this.#temporary, { recursive: true, force: true })
  }

  async #run(
    command: string,
    args: readonly string[],
    limitMs: number,
    env: Readonly<Record<string, string>> = {},
  ): Promise<Output> {
    const child = new LabProcess(command, args, { cwd: this.path, env })
    this.#child = child
    const output = await child.ended(limitMs)
    if (output !== undefined) return output
    await child.stop()
    return { code: -1, stdout: child.stdout, stderr: `${child.stderr}ended after its limit\n` }
  }
}
