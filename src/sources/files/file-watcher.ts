// Looks at the files of all sources: every 100 ms while they change, every 5 s while they rest, and at once when a folder
// reports a change. A look costs a few system calls for every file, which is most of what an idle daemon does.

import type { Config } from '../../config/config.ts'
import type { Clock, Timer } from '../../core/clock.ts'
import { SourceAges, type SourceAgesOptions, type SourceKind } from '../source-ages.ts'
import { FolderWatcher } from './folder-watcher.ts'
import type { SourceFiles } from './source-files.ts'

/** Between two looks while files change, */
const BUSY_MS = 100
/** between two looks once nothing has changed for `PATIENCE_MS`, where some changes are not reported, */
const QUIET_MS = 400
/** and where every change is reported: a second line of defence. */
const REPORTED_MS = 5000
const PATIENCE_MS = 10_000

/** The longest part of a look in one turn of the event loop. */
const SLICE_MS = 2

/** Files of any kind, as far as they are watched. */
type WatchedFiles = Pick<
  SourceFiles<unknown>,
  'files' | 'forget' | 'isReachable' | 'poll' | 'scan' | 'unsettled'
>

/** What a look found; `unfinished`: it continues in the next turn; `done`: no further look is needed. */
type Look = 'changing' | 'quiet' | 'done' | 'unfinished'

export interface FileWatcherOptions {
  readonly config: Pick<Config, 'endpoints' | 'policies' | 'resources' | 'sources'>
  readonly clock: Clock
  readonly files: Readonly<Record<SourceKind, WatchedFiles>>
  /** Files were read that may ask for something else than before. */
  readonly onChanged: () => void
  readonly onSilence: SourceAgesOptions['onChange']
}

export class FileWatcher {
  readonly ages: SourceAges
  readonly #options: FileWatcherOptions
  readonly #all: readonly WatchedFiles[]
  #folders: FolderWatcher | undefined
  #timer: Timer | undefined
  #changedAt = 0
  /** Whether something changed since the last look. */
  #hasChanged = true
  #isSlow = false

  constructor(options: FileWatcherOptions) {
    const { config, clock, files, onSilence } = options
    this.#options = options
    this.#all = Object.values(files)
    this.ages = new SourceAges({ clock, maxAgeMs: config.sources.maxAgeMs, onChange: onSilence })
  }

  get isRunning(): boolean {
    return this.#timer !== undefined
  }

  start(): void {
    if (this.#options.config.policies.watch) this.#start()
  }

  stop(): void {
    this.#timer?.cancel()
    this.#timer = undefined
    this.#folders?.close()
  }

  /** Reads every file again, changed or not, once it has settled. */
  reload(): void {
    for (const files of this.#all) files.forget()
    this.#look()
    if (!this.isRunning) this.#start()
  }

  /** After a look at every file: notes which sources were reachable. */
  noteAges(): void {
    const { policies, endpoints, resources } = this.#options.files
    this.ages.update([
      ['policies', policies.isReachable],
      ['endpoints', endpoints.isReachable],
      ['resources', resources.isReachable],
    ])
  }

  #start(): void {
    this.stop()
    this.#hasChanged = true
    this.#watchFolders()
    this.#schedule()
  }

  #schedule(): void {
    const now = this.#options.clock.now()
    if (this.#hasChanged) this.#changedAt = now
    this.#hasChanged = false
    const isSlow = now - this.#changedAt >= PATIENCE_MS
    // Folders that came while the looks were frequent are watched from here on.
    if (isSlow && !this.#isSlow) this.#watchFolders()
    this.#isSlow = isSlow
    const slow = this.#folders?.reportsAll === true ? REPORTED_MS : QUIET_MS
    this.#lookIn(isSlow ? slow : BUSY_MS)
  }

  #lookIn(ms: number): void {
    const { clock } = this.#options
    this.#timer = clock.after(ms, () => {
      const look = this.#look(clock.now() + SLICE_MS)
      if (look === 'changing') this.#hasChanged = true
      if (this.#timer === undefined) return
      if (look === 'unfinished') this.#lookIn(0)
      else if (look === 'done') this.stop()
      else this.#schedule()
    })
  }

  #look(until = Number.POSITIVE_INFINITY): Look {
    if (!this.#all.every((files) => files.scan(until))) return 'unfinished'
    const changed = this.#all.map((files) => files.poll()).includes(true)
    this.noteAges()
    if (changed) this.#options.onChanged()
    // Without `policies.watch`, the looks after SIGHUP continue until every change has settled.
    if (changed || this.#all.some(({ unsettled }) => unsettled)) return 'changing'
    return this.#options.config.policies.watch ? 'quiet' : 'done'
  }

  #watchFolders(): void {
    const { policies, endpoints, resources } = this.#options.config
    const configured = [...policies.paths, ...endpoints.files, ...resources.files]
    const known = this.#all.flatMap(({ files }) => [...files])
    const paths = [...configured, ...known].map(({ path }) => path)
    this.#folders?.close()
    this.#folders = new FolderWatcher(paths, () => this.#wake())
  }

  /** A folder reported a change. */
  #wake(): void {
    this.#hasChanged = true
    if (!this.#isSlow || this.#timer === undefined) return
    this.#timer.cancel()
    this.#schedule()
  }
}
