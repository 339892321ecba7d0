// Reads single lines of policy files, for the rules behind a refusal. Only files that are sources of policies are read. The lines of a file
// are kept until the policies change.

import { readFile, stat } from 'node:fs/promises'
import type { AdminState } from '../state.ts'

const FILES_MAX = 32
const OCTETS_MAX = 1_048_576
const LINE_MAX = 200

export class PolicyLines {
  readonly #state: Pick<AdminState, 'policyFiles' | 'policies'>
  readonly #files = new Map<string, Promise<readonly string[]>>()
  #revision = -1

  constructor(state: Pick<AdminState, 'policyFiles' | 'policies'>) {
    this.#state = state
  }

  /** The text of a line, at most 200 characters of it. Undefined when the line cannot be read. `line` begins at 1. */
  async text(file: string, line: number): Promise<string | undefined> {
    const { revision } = this.#state.policies
    if (revision !== this.#revision) this.#files.clear()
    this.#revision = revision
    const known = this.#files.get(file)
    if (known !== undefined) return (await known)[line - 1]?.trim().slice(0, LINE_MAX)
    if (this.#files.size >= FILES_MAX || !this.#isSource(file)) return undefined
    const reading = read(file)
    this.#files.set(file, reading)
    return (await reading)[line - 1]?.trim().slice(0, LINE_MAX)
  }

  #isSource(file: string): boolean {
    for (const { path } of this.#state.policyFiles()) if (path === file) return true
    return false
  }
}

async function read(file: string): Promise<readonly string[]> {
  try {
    const { size } = await stat(file)
    return size > OCTETS_MAX ? [] : (await readFile(file, 'utf8')).split('\n')
  } catch {
    return []
  }
}
