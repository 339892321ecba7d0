// Looks at the files of all sources, one look after the other, and says when what they ask for may be another and how long
// ago each kind of source was heard. A look at very many files takes several turns of the loop.

import type { Clock } from '../../core/clock.ts'
import type { Config } from '../../config/config.ts'
import { LookTimer, type Looked } from './look-timer.ts'
import { SourceAges, type SourceAgesOptions, type SourceKind } from '../source-ages.ts'
import type { SourceFiles } from './source-files.ts'

/** Files of any kind, as far as they are looked at. */
type WatchedFiles = Pick<
  SourceFiles<unknown>,
  'files' | 'forget' | 'isHeard' | 'poll' | 'scan' | 'unsettled'
>

export interface SourceWatchOptions {
  readonly config: Config
  readonly clock: Clock
  readonly files: Readonly<Record<SourceKind, WatchedFiles>>
  /** Files were read that may ask for something else than before. */
  readonly onChanged: () => void
  readonly onSilence: SourceAgesOptions['onChange']
}

export class SourceWatch {
  readonly ages: SourceAges
  readonly #to: SourceWatchOptions
  readonly #all: readonly WatchedFiles[]
  readonly #timer: LookTimer

  constructor(options: SourceWatchOptions) {
    const { config, clock, files, onSilence } = options
    this.#to = options
    this.#all = Object.values(files)
    this.ages = new SourceAges({ clock, maxAgeMs: config.sources.maxAgeMs, onChange: onSilence })
    this.#timer = new LookTimer({ clock, look: (until) => this.#look(until) })
  }

  start(): void {
    if (this.#to.config.policies.watch) this.#start()
  }

  stop(): void {
    this.#timer.stop()
  }

  /** Reads everything again, whether it looks changed or not; no file in the middle of an edit. */
  reload(): void {
    for (const files of this.#all) files.forget()
    this.#look()
    if (!this.#timer.isRunning) this.#start()
  }

  /** Everything was looked at. */
  tellHeard(): void {
    const { policies, endpoints, resources } = this.#to.files
    this.ages.looked([
      ['policies', policies.isHeard],
      ['endpoints', endpoints.isHeard],
      ['resources', resources.isHeard],
    ])
  }

  #start(): void {
    const { policies, endpoints, resources } = this.#to.config
    const configured = [...policies.paths, ...endpoints.files, ...resources.files]
    this.#timer.start(() => {
      const known = this.#all.flatMap(({ files }) => files.map(({ path }) => path))
      return [...configured.map(({ path }) => path), ...known]
    })
  }

  #look(until = Number.POSITIVE_INFINITY): Looked {
    if (!this.#all.every((files) => files.scan(until))) return 'unfinished'
    const changed = this.#all.map((files) => files.poll()).includes(true)
    this.tellHeard()
    if (changed) this.#to.onChanged()
    // Without watching, a look after SIGHUP goes on until every change has settled.
    if (changed || this.#all.some(({ unsettled }) => unsettled)) return 'changing'
    return this.#to.config.policies.watch ? 'quiet' : 'done'
  }
}
