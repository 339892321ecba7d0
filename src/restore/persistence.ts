// What a daemon keeps over restarts, put together: who notes changes, who writes them, and what is made of that by the
// next one. With nothing to keep it in, all of it is absent.

import type { Identity } from '../core/ids.ts'
import { endpointId, identity } from '../core/ids.ts'
import type { EndpointRegistry } from '../endpoints/registry.ts'
import type { WithheldNumber } from '../identity/numbers.ts'
import { EntryLedger } from '../names/tables/entry-ledger.ts'
import type { CoreOptions, CoreState } from '../enforcement/core-state.ts'
import { PendingAddresses } from './pending-addresses.ts'
import { PendingEntries } from './pending-entries.ts'
import { SavedEndpoints } from './saved-endpoints.ts'
import type { SavedState } from './saved-state.ts'
import { StateRecorder } from './state-recorder.ts'
import type { SavedDocument, StateSink } from './state-sink.ts'

/** What a daemon is given to outlive itself by. */
export interface StateFolder {
  /** What the one before knew. Undefined: nothing that could be read. */
  readonly saved: SavedState | undefined
  readonly sink: StateSink
  /** Seconds since boot when the clock showed 0. */
  readonly bootAtZero: number
}

/** Texts of files of sources by path. */
export interface FileKeeper {
  readonly saved: ReadonlyMap<string, string>
  /** `text` undefined: it is no more. */
  readonly keep: (path: string, text: string | undefined) => void
}

/** What is written down of files of sources. */
export function fileDocuments(
  texts: ReadonlyMap<string, string> | undefined,
): readonly SavedDocument[] {
  return [...(texts ?? [])].map(([key, text]) => ({ kind: 'source-file', key, text }))
}

export class Persistence {
  /** For the core: which pairs change, which numbers wait, and who is told of new ones. */
  readonly ledger: EntryLedger | undefined
  readonly withheld: readonly WithheldNumber[] | undefined
  readonly endpoints: SavedEndpoints | undefined
  readonly #kept: StateFolder | undefined
  readonly #addresses: PendingAddresses | undefined
  #recorder: StateRecorder | undefined

  /** `pairs`: as many as the name cache holds. */
  constructor(kept: StateFolder | undefined, pairs: number) {
    this.#kept = kept
    this.ledger = kept && new EntryLedger({ capacity: pairs })
    this.withheld = kept?.saved?.numbers.map(({ id, labels }) => ({ id: identity(id), labels }))
    this.endpoints = kept?.saved && new SavedEndpoints(kept.saved)
    this.#addresses = kept?.saved && new PendingAddresses(kept.saved.pairs)
  }

  /** Where texts of files in force are kept, with those that were; undefined where nothing is. */
  get fileKeeper(): FileKeeper | undefined {
    if (this.#kept === undefined) return undefined
    const saved = this.#kept.saved?.sourceFiles ?? new Map<string, string>()
    return { saved, keep: (key, text) => this.onDocument({ kind: 'source-file', key, text }) }
  }

  /** What the core is made with. */
  get ofCore(): Pick<CoreOptions, 'ledger' | 'withheld' | 'onNumbers'> {
    const { ledger, withheld, onNumbers } = this
    return { ledger, withheld, onNumbers }
  }

  /** Identities got their numbers, and no entry of the datapath carries them yet. */
  readonly onNumbers = (allocated: readonly Identity[]): void => {
    this.#recorder?.numbers(allocated)
  }

  readonly onDocument = (document: SavedDocument): void => {
    this.#recorder?.document(document)
  }

  /** Begins to write down; `documents`: all of them as they are now. */
  begin(core: CoreState, documents: () => Iterable<SavedDocument>): void {
    const { ledger } = this
    if (this.#kept === undefined || ledger === undefined) return
    this.#recorder = new StateRecorder({ ...this.#kept, core, ledger, documents })
  }

  /** What was learned before, on its way back. */
  pendingEntries({ names }: CoreState, registry: EndpointRegistry): PendingEntries | undefined {
    const { ledger } = this
    const addresses = this.#addresses
    const { saved, bootAtZero = 0 } = this.#kept ?? {}
    if (saved === undefined || addresses === undefined) return undefined
    const isKnown = (endpoint: number): boolean => {
      return this.#isSame(endpoint) && registry.byNumber(endpoint) !== undefined
    }
    return new PendingEntries({ saved: saved.pairs, addresses, names, ledger, bootAtZero, isKnown })
  }

  #isSame(endpoint: number): boolean {
    return this.endpoints?.isSame(endpointId(endpoint)) === true
  }

  /** Writes everything that has no record yet. */
  finish(): void {
    this.#recorder?.finish()
  }
}
