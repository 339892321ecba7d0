// Persistence saves the state that a daemon needs after a restart. It also returns the state that the previous daemon saved. It creates
// the ledger of changed entries, the recorder, the saved endpoints and the pending entries. Without a state folder all of these are
// undefined.

import type { Identity } from '../core/ids.ts'
import { endpointId, identity } from '../core/ids.ts'
import type { EndpointRegistry } from '../endpoints/registry.ts'
import type { CoreOptions, CoreState } from '../enforcement/core-state.ts'
import type { WithheldNumber } from '../identity/numbers.ts'
import { EntryLedger } from '../names/tables/entry-ledger.ts'
import { PendingAddresses, PendingEntries } from './pending-entries.ts'
import { SavedEndpoints } from './saved-endpoints.ts'
import { StateRecorder } from './state-recorder.ts'
import type { SavedDocument, StateFolder } from './state-port.ts'

/** Saves the texts of source files by path. */
export interface FileKeeper {
  readonly saved: ReadonlyMap<string, string>
  /** Saves the text of a file. `text` undefined: the file was removed. */
  readonly keep: (path: string, text: string | undefined) => void
}

/** Makes one SavedDocument per source file, which has its path and its text. `texts`: the texts by path. */
export function fileDocuments(
  texts: ReadonlyMap<string, string> | undefined,
): readonly SavedDocument[] {
  return [...(texts ?? [])].map(([key, text]) => ({ kind: 'source-file', key, text }))
}

export class Persistence {
  readonly ledger: EntryLedger | undefined
  readonly endpoints: SavedEndpoints | undefined
  readonly #withheld: readonly WithheldNumber[] | undefined
  readonly #folder: StateFolder | undefined
  readonly #addresses: PendingAddresses | undefined
  #recorder: StateRecorder | undefined

  /** `capacity`: rows of the entry table. */
  constructor(folder: StateFolder | undefined, capacity: number) {
    const saved = folder?.saved
    this.#folder = folder
    this.ledger = folder && new EntryLedger({ capacity })
    this.endpoints = saved && new SavedEndpoints(saved)
    this.#withheld = saved?.numbers.map(({ id, labels }) => ({ id: identity(id), labels }))
    this.#addresses = saved && new PendingAddresses(saved.pairs)
  }

  /** Saves the texts of source files, and holds the texts that the previous daemon saved. Undefined without a state folder. */
  get fileKeeper(): FileKeeper | undefined {
    if (this.#folder === undefined) return undefined
    const saved = this.#folder.saved?.sourceFiles ?? new Map<string, string>()
    return { saved, keep: (key, text) => this.onDocument({ kind: 'source-file', key, text }) }
  }

  /** The options of the core that come from this object. */
  get ofCore(): Pick<CoreOptions, 'ledger' | 'withheld' | 'onNumbers'> {
    const onNumbers = (allocated: readonly Identity[]): void => this.#recorder?.numbers(allocated)
    return { ledger: this.ledger, withheld: this.#withheld, onNumbers }
  }

  readonly onDocument = (document: SavedDocument): void => {
    this.#recorder?.document(document)
  }

  /** Begins to write records. `documents` returns the present text of every endpoint and every source file that is saved. */
  begin(core: CoreState, documents: () => Iterable<SavedDocument>): void {
    const { ledger } = this
    if (this.#folder === undefined || ledger === undefined) return
    this.#recorder = new StateRecorder({ ...this.#folder, core, ledger, documents })
  }

  /** Returns the saved entries that a restart brings back, or undefined if nothing was saved. */
  pendingEntries(
    { names, expiry }: Pick<CoreState, 'names' | 'expiry'>,
    registry: EndpointRegistry,
  ): PendingEntries | undefined {
    const { ledger, endpoints } = this
    const addresses = this.#addresses
    const { saved, bootAtZero = 0 } = this.#folder ?? {}
    if (saved === undefined || addresses === undefined) return undefined
    const isKnown = (endpoint: number): boolean =>
      endpoints?.isSame(endpointId(endpoint)) === true && registry.byNumber(endpoint) !== undefined
    return new PendingEntries({
      saved: saved.pairs,
      addresses,
      names,
      ledger,
      bootAtZero,
      isKnown,
      expiry,
    })
  }

  /** Writes everything that has no record yet. */
  finish(): void {
    this.#recorder?.finish()
  }
}
