// Reads one line of a watch.

import { describeValue, isMapping } from '../../documents/source-document.ts'
import { readStatus, type ApiStatus } from '../connection/api-status.ts'
import { readObject, readVersion, type KubernetesObject, type ObjectKind } from './objects.ts'

export type WatchEvent =
  | { readonly kind: 'change' | 'removal'; readonly object: KubernetesObject }
  | { readonly kind: 'bookmark'; readonly version: string; readonly endsInitial: boolean }
  | { readonly kind: 'error'; readonly status: ApiStatus }
  | { readonly kind: 'fault'; readonly fault: string }

const INITIAL_END = 'k8s.io/initial-events-end'

/** Reads an event. Never throws, whatever the value. */
export function readEvent(event: unknown, kind: ObjectKind): WatchEvent {
  if (!isMapping(event)) return fault(kind, `found ${describeValue(event)}, expected an event`)
  const { type, object } = event
  switch (type) {
    case 'ADDED':
    case 'MODIFIED':
    case 'DELETED': {
      const read = readObject(object, kind)
      if (read.kind === 'fault') return read
      return { kind: type === 'DELETED' ? 'removal' : 'change', object: read.object }
    }
    case 'BOOKMARK': {
      const version = readVersion(object)
      if (version === undefined) return fault(kind, 'found a bookmark without a version')
      return { kind: 'bookmark', version, endsInitial: isInitialEnd(object) }
    }
    case 'ERROR':
      return { kind: 'error', status: readStatus(object) }
    default:
      return fault(kind, `found an event of type ${describeValue(type)}, expected a known type`)
  }
}

function isInitialEnd(object: unknown): boolean {
  const metadata = isMapping(object) ? object['metadata'] : undefined
  const annotations = isMapping(metadata) ? metadata['annotations'] : undefined
  return isMapping(annotations) && annotations[INITIAL_END] === 'true'
}

function fault({ kind }: ObjectKind, what: string): WatchEvent {
  return { kind: 'fault', fault: `${kind}: ${what}` }
}
