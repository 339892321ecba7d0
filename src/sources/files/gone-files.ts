// Configured files that went away are told in the log, each once until it is there again, with the endpoints that are
// known no more by it: no policy holds for them from then on.

import type { EndpointRecord } from '../../endpoints/file.ts'
import type { Log } from '../../telemetry/log.ts'

export interface GoneFilesOptions {
  readonly log: Log
  /** Those that are not there now. */
  readonly files: () => readonly string[]
  /** In force. */
  readonly endpoints: () => readonly EndpointRecord[]
}

export class GoneFiles {
  readonly #of: GoneFilesOptions
  #told: ReadonlySet<string> = new Set()

  constructor(options: GoneFilesOptions) {
    this.#of = options
  }

  /** Looks what is new, before it counts. */
  tell(): void {
    const { log, files, endpoints } = this.#of
    const gone = new Set(files())
    for (const path of gone) {
      if (this.#told.has(path)) continue
      const lost = endpoints().filter(({ position }) => position.file === path)
      const names = lost.length === 0 ? undefined : lost.map(({ name }) => name)
      log.warn({ path, endpoints: names }, 'file is not there: nothing of it is in force')
    }
    this.#told = gone
  }
}
