// Looks at the files of all sources: every 100 ms while they change, every 5 s while they do not, and at once when a folder reports a
// change. A look costs a few system calls for every file. This is most of what an idle daemon does.

import type { Config } from '../../config/config.ts'
import type { Clock, Timer } from '../../core/clock.ts'
import { SourceAges, type OnSilence, type SourceKind } from '../source-ages.ts'
import { isObjectName } from '../../core/object-names.ts'
import { FolderWatcher } from './folder-watcher.ts'
import type { SourceFiles } from './source-files.ts'

/** Time between two looks while files change. */
const BUSY_MS = 100
/** Time between two looks when nothing has changed for `PATIENCE_MS` and some changes are not reported. */
const QUIET_MS = 400
/** Time between two looks when nothing has changed for `PATIENCE_MS` and every change is reported. Finds a change without a report. */
const REPORTED_MS = 5000
const PATIENCE_MS = 10_000

/** How long a look takes in one turn of the event loop. The rest follows in the next turn. */
const SLICE_MS = 2

/** The part of SourceFiles that FileWatcher uses. */
type WatchedFiles = Pick<
  SourceFiles<unknown>,
  'files' | 'forget' | 'isReachable' | 'poll' | 'scan' | 'unsettled'
>

/** What a look found. `unfinished`: the look continues in the next turn. `done`: no further look is needed. */
type Look = 'changing' | 'quiet' | 'done' | 'unfinished'

export interface FileWatcherOptions {
  readonly config: Pick<Config, 'endpoints' | 'policies' | 'resources' | 'sources'>
  readonly clock: Clock
  readonly files: Readonly<Record<Exclude<SourceKind, 'collections'>, WatchedFiles>>
  /** True while the cluster shows every collection. Returns undefined without a cluster. */
  readonly isClusterReachable?: () => boolean | undefined
  /** Called when files were read whose items can differ from before. */
  readonly onChanged: () => void
  readonly onSilence: OnSilence
}

export class FileWatcher {
  readonly ages: SourceAges
  readonly #options: FileWatcherOptions
  readonly #all: readonly WatchedFiles[]
  #folders: FolderWatcher | undefined
  #timer: Timer | undefined
  #changedAt = 0
  /** True if something has changed since the last look. */
  #hasChanged = true
  #isSlow = false

  constructor(options: FileWatcherOptions) {
    const { config, clock, files, onSilence } = options
    this.#options = options
    this.#all = Object.values(files)
    this.ages = new SourceAges(clock, config.sources.maxAgeMs, onSilence)
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

  /** Makes the daemon read every file again, also unchanged files. */
  reload(): void {
    for (const files of this.#all) files.forget()
    this.#look()
    if (!this.isRunning) this.#start()
  }

  /** Notes which sources could be read in the last look at all files. */
  noteAges(): void {
    const { policies, endpoints, resources } = this.#options.files
    const isReachable = this.#options.isClusterReachable?.()
    this.ages.update([
      ...(isReachable === undefined ? [] : [['collections', isReachable] as const]),
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
    // Watches the folders again, because folders may have been made while the looks were frequent.
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
    // Without `policies.watch`, the looks after SIGHUP continue until no change waits for its quiet time.
    if (changed || this.#all.some(({ unsettled }) => unsettled)) return 'changing'
    return this.#options.config.policies.watch ? 'quiet' : 'done'
  }

  #watchFolders(): void {
    const { policies, endpoints, resources } = this.#options.config
    const configured = [...policies.paths, ...endpoints.files, ...resources.files]
    const known = this.#all.flatMap(({ files }) => [...files])
    const all = [...configured, ...known].map(({ path }) => path)
    const paths = all.filter((path) => !isObjectName(path))
    this.#folders?.close()
    this.#folders = new FolderWatcher(paths, () => this.#wake())
  }

  /** Called when a folder reports a change. */
  #wake(): void {
    this.#hasChanged = true
    if (!this.#isSlow || this.#timer === undefined) return
    this.#timer.cancel()
    this.#schedule()
  }
}
