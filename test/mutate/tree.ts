// A copy of the tree in which one line is changed at a time, and its tests run there.

import {
  chmodSync,
  cpSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative, resolve } from 'node:path'
import type { Mutation } from './mutation.ts'
import { LabProcess } from '../support/labs/lab-process.ts'

/** Not in the copy: what is linked, made anew or not needed. */
const LEFT_OUT = /^(?:node_modules|\.git|dist|var|build\/(?:tools|Sanitize|dist))(?:\/|$)/
const TEST_LIMIT_MS = 300_000
const BUILD_LIMIT_MS = 120_000

export class Tree {
  readonly path = mkdtempSync(join(tmpdir(), 'namegate-mutate-'))
  /** Whether the tests of a file pass where nothing is changed; they are run once, when they notice something. */
  readonly #sound = new Map<string, boolean>()
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

  /** Runs `act` with the line changed. Throws when there is no such line, or it cannot be built. */
  async with<T>({ file, before, after }: Mutation, act: () => Promise<T>): Promise<T> {
    const path = join(this.path, file)
    const text = readFileSync(path, 'utf8')
    const parts = text.split(before)
    if (parts.length !== 2) throw new Error(`${parts.length - 1} places have this text`)
    try {
      writeFileSync(path, parts.join(after))
      await this.#build(file)
      return await act()
    } finally {
      writeFileSync(path, text)
      await this.#build(file)
    }
  }

  /** Whether the tests of a file pass. */
  async passes(test: string): Promise<boolean> {
    const { code } = await this.#run(process.execPath, ['--import', 'tsx', test], TEST_LIMIT_MS)
    return code === 0
  }

  /** The same where nothing is changed. */
  async isSound(test: string): Promise<boolean> {
    const known = this.#sound.get(test)
    if (known !== undefined) return known
    const isSound = await this.passes(test)
    this.#sound.set(test, isSound)
    return isSound
  }

  /** Ends what runs. */
  async stop(): Promise<void> {
    await this.#child?.stop()
  }

  remove(): void {
    rmSync(this.path, { recursive: true, force: true })
  }

  async #build(file: string): Promise<void> {
    if (!/\.[ch]$/.test(file)) return
    const { code, stderr } = await this.#run('sh', ['scripts/build-native.sh'], BUILD_LIMIT_MS)
    if (code !== 0) throw new Error(`it cannot be built: ${stderr.trim().slice(0, 400)}`)
  }

  async #run(command: string, args: readonly string[], limitMs: number) {
    const env = { VALIDATE: '1', NAMEGATE_TEST: '1' }
    const child = new LabProcess(command, args, { cwd: this.path, env })
    this.#child = child
    const output = await child.ended(limitMs)
    if (output !== undefined) return output
    await child.stop()
    return { code: -1, stdout: child.stdout, stderr: `${child.stderr}ended after its limit\n` }
  }
}
