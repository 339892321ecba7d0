// A Helper runs a program beside the command, and makes sure that the program never outlives this process. The program's standard input is
// a pipe whose other end only this process has. When this end closes, the program ends.

import { spawn, type ChildProcess } from 'node:child_process'
import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'

/** A program that runs until `stop`, or until this process ends. */
export class Helper {
  /** Resolves when the program has ended, also when it could not be started. */
  readonly ended: Promise<void>
  readonly #child: ChildProcess
  #onOutput: () => void = () => undefined
  #said = ''
  #stdout = ''
  #over = false

  /** Starts the program and writes `input` to it. */
  constructor([program = '', ...args]: readonly string[], input = '') {
    this.#child = spawn(program, args, {
      // A process group of its own, so that signals to the group of this process do not reach the program.
      detached: true,
      stdio: ['pipe', 'pipe', 'pipe'],
      env: { PATH: searchPath(), LC_ALL: 'C' },
    })
    this.#child.stdin?.on('error', () => undefined)
    this.#child.stdin?.write(input)
    this.#child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#said = (this.#said + text).slice(-MESSAGE_MAX)
    })
    this.#child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.#stdout = (this.#stdout + text).slice(-MESSAGE_MAX)
      this.#onOutput()
    })
    this.ended = new Promise((done) => {
      const end = (): void => {
        this.#over = true
        done()
      }
      this.#child.on('error', end)
      this.#child.on('close', end)
    })
  }

  get isOver(): boolean {
    return this.#over
  }

  /** Returns the last line of stderr that is not a known line without meaning for the user. */
  get said(): string {
    const lines = this.#said.split('\n').filter((line) => line.trim() !== '' && !NOISE.test(line))
    return lines.at(-1)?.trim() ?? 'it says nothing'
  }

  /** Resolves with stdout as soon as it matches the pattern. Resolves with undefined if the program ended before. */
  async printed(pattern: RegExp): Promise<string | undefined> {
    const matched = new Promise<void>((done) => {
      this.#onOutput = () => {
        if (pattern.test(this.#stdout)) done()
      }
      this.#onOutput()
    })
    await Promise.race([matched, this.ended])
    return pattern.test(this.#stdout) ? this.#stdout : undefined
  }

  async stop(): Promise<void> {
    this.#child.stdin?.end()
    await this.ended
  }
}

const MESSAGE_MAX = 4096
const NOISE = /^Failed to send \d+ bytes to syslog$/

/** Returns PATH with the folders of administrators' tools, which not every user has in PATH. */
export function searchPath(): string {
  return `${process.env['PATH'] ?? ''}:/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin`
}

export function isInstalled(program: string): boolean {
  return searchPath()
    .split(delimiter)
    .some((folder) => folder !== '' && isExecutable(join(folder, program)))
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK)
    return true
  } catch {
    return false
  }
}
