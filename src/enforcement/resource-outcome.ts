// What became of a resource that was given or taken away at run time.

import type { Resource } from './resource-control.ts'

export type ResourceOutcome =
  | {
      readonly kind: 'ok'
      /** Whether anything is to be brought into force. */
      readonly changed: boolean
      /** Wall-clock milliseconds; undefined: it has no end. */
      readonly expires: number | undefined
      /** Resolves when it is kept over restarts; rejects when that cannot be. */
      readonly kept: Promise<void>
    }
  /** Each with the path of what is wrong. */
  | { readonly kind: 'invalid'; readonly reasons: readonly string[] }
  /** It contradicts what there is, or passes a bound: nothing has changed. */
  | { readonly kind: 'conflict'; readonly reason: string }
  | { readonly kind: 'unknown'; readonly reason: string }

/** A resource in force, with where it is from. */
export interface ListedResource extends Resource {
  readonly origin: 'file' | 'api'
  /** Wall-clock milliseconds; undefined: it has no end. */
  readonly expires: number | undefined
}
