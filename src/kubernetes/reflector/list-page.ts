// Reads one page of a list.

import { isMapping } from '../../documents/source-document.ts'
import { readVersion } from './objects.ts'

export interface ListPage {
  readonly items: readonly unknown[]
  readonly version: string
  /** The token of the next page; undefined on the last page. */
  readonly next: string | undefined
}

/** Returns undefined if the body is no list with a version. */
export function readPage(body: unknown): ListPage | undefined {
  const version = readVersion(body)
  if (!isMapping(body) || version === undefined) return undefined
  const items = body['items'] ?? []
  const metadata = body['metadata']
  const next = isMapping(metadata) ? metadata['continue'] : undefined
  if (!Array.isArray(items)) return undefined
  return { items, version, next: typeof next === 'string' && next !== '' ? next : undefined }
}
