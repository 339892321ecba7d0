// Asks for a list, page by page or as a whole. Every page must come from the same version. If a page cannot come, the whole list is given
// up. After a compaction the server offers a token of another version, which is never used.

import type { ApiLoss, ApiPort, ApiRequest } from '../connection/api-port.ts'
import { statusOfAnswer, type ApiStatus } from '../connection/api-status.ts'
import { readPage } from './list-page.ts'

export type ListEnd =
  | { readonly kind: 'listed'; readonly version: string }
  | { readonly kind: 'refused'; readonly status: ApiStatus }
  /** A later page is not from the version of the first one, or no longer there. */
  | { readonly kind: 'torn'; readonly reason: string }
  | ApiLoss

export interface ListHandlers {
  /** Makes the path of a page. `next` is undefined for the first page. */
  pathOf(next: string | undefined): string
  /** Takes the items of one page. Returns false if there are too many. */
  take(items: readonly unknown[]): boolean
  /** The last call. */
  onEnd(end: ListEnd): void
}

export class PagedList implements ApiRequest {
  readonly #api: ApiPort
  readonly #handlers: ListHandlers
  #request: ApiRequest | undefined
  #version: string | undefined
  #isCancelled = false

  constructor(api: ApiPort, handlers: ListHandlers) {
    this.#api = api
    this.#handlers = handlers
    this.#ask(undefined)
  }

  cancel(): void {
    this.#isCancelled = true
    this.#request?.cancel()
  }

  #ask(next: string | undefined): void {
    const handlers = this.#handlers
    this.#request = this.#api.get(handlers.pathOf(next), (end) => {
      if (end.kind !== 'answer') return handlers.onEnd(end)
      const status = statusOfAnswer(end)
      if (next !== undefined && status.code === 410) {
        return handlers.onEnd({ kind: 'torn', reason: 'a page of the list is no longer available' })
      }
      if (status.code !== 200) return handlers.onEnd({ kind: 'refused', status })
      this.#page(end.body)
    })
  }

  #page(body: unknown): void {
    const handlers = this.#handlers
    const page = readPage(body)
    if (page === undefined) {
      return handlers.onEnd({
        kind: 'lost',
        reason: 'the answer of the API server is no complete list',
      })
    }
    this.#version ??= page.version
    if (page.version !== this.#version) {
      return handlers.onEnd({
        kind: 'torn',
        reason: 'the pages of the list have different versions',
      })
    }
    const fits = handlers.take(page.items)
    if (this.#isCancelled) return // by the taker
    if (!fits) return handlers.onEnd({ kind: 'too-long', reason: 'the list has too many objects' })
    if (page.next === undefined) return handlers.onEnd({ kind: 'listed', version: page.version })
    this.#ask(page.next)
  }
}
