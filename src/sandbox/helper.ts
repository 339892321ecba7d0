// A program beside the command that ends with us, however we end: its standard input is a pipe whose other end only this process
// has, and the program ends when that end closes.

import { spawn, type ChildProcess } from 'node:child_process'
import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'

/** A helper that runs until `stop`, or until this process ends in whatever way. */
export class Helper {
  readonly ended: Promise<void>
  readonly #child: ChildProcess
  #onTold: () => void = () => undefined
  #said = ''
  #told = ''
  #over = false

  /** Ends when its input does; `input` is what it reads before. */
  constructor([program = '', ...args]: readonly string[], input = '') {
    this.#child = spawn(program, args, {
      // Signals to our process group are not for it.
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
      this.#told = (this.#told + text).slice(-MESSAGE_MAX)
      this.#onTold()
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

  /** The last line it wrote that is no noise. */
  get said(): string {
    const lines = this.#said.split('\n').filter((line) => line.trim() !== '' && !NOISE.test(line))
    return lines.at(-1)?.trim() ?? 'it says nothing'
  }

  /** What it has told on stdout when that matches; undefined when it ended before. */
  async tells(pattern: RegExp): Promise<string | undefined> {
    const told = new Promise<void>((done) => {
      this.#onTold = () => {
        if (pattern.test(this.#told)) done()
      }
      this.#onTold()
    })
    await Promise.race([told, this.ended])
    return pattern.test(this.#told) ? this.#told : undefined
  }

  async stop(): Promise<void> {
    this.#child.stdin?.end()
    await this.ended
  }
}

const MESSAGE_MAX = 4096
const NOISE = /^Failed to send \d+ bytes to syslog$/

/** Tools of the administrator are not on every user's path. */
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
