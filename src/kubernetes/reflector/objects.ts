// Reads one object of the API. It keeps the fields that namegate uses and leaves out the rest, such as managedFields, so that the whole
// answer of the server can be freed. An object without identity is a fault, because no later event could name it.

import { describeValue, isMapping } from '../../documents/source-document.ts'

export type Texts = Readonly<Record<string, string>>

export interface ObjectMetadata {
  readonly name: string
  readonly namespace?: string
  readonly uid: string
  readonly resourceVersion: string
  readonly labels?: Texts
  readonly annotations?: Texts
  readonly deletionTimestamp?: string
}

export interface KubernetesObject {
  readonly apiVersion?: string
  readonly kind?: string
  readonly metadata: ObjectMetadata
  readonly spec?: unknown
  /** CiliumNetworkPolicy can have several specs. */
  readonly specs?: unknown
  readonly status?: unknown
}

/** `value` is the fault as a sentence about the object. */
export type ObjectResult =
  | { readonly kind: 'object'; readonly object: KubernetesObject }
  | { readonly kind: 'fault'; readonly fault: string }

/** The kind of a collection. The items of a list have no kind of their own, so the reader adds it. */
export interface ObjectKind {
  readonly apiVersion: string
  readonly kind: string
  /** The only fields that are read of the spec and the status. Absent: everything. */
  readonly only?: { readonly spec: readonly string[]; readonly status: readonly string[] }
}

/** Reads an object. Never throws, whatever the value. */
export function readObject(value: unknown, kind: ObjectKind): ObjectResult {
  if (!isMapping(value)) return fault(kind, describeValue(value), 'an object')
  const metadata = value['metadata']
  if (!isMapping(metadata)) return fault(kind, describeValue(metadata), 'metadata')
  const { name, namespace, uid, resourceVersion, deletionTimestamp } = metadata
  if (!isFilled(name)) return fault(kind, describeValue(name), 'metadata.name')
  const what = isFilled(namespace) ? `${namespace}/${name}` : name
  if (!isFilled(uid)) return fault(kind, describeValue(uid), 'metadata.uid', what)
  if (!isFilled(resourceVersion)) {
    return fault(kind, describeValue(resourceVersion), 'metadata.resourceVersion', what)
  }
  for (const key of ['labels', 'annotations']) {
    const found = metadata[key] ?? undefined
    if (found !== undefined && !isTexts(found)) {
      return fault(kind, describeValue(found), `metadata.${key} with texts`, what)
    }
  }
  const { labels, annotations } = metadata
  const read: ObjectMetadata = {
    name,
    uid,
    resourceVersion,
    ...(isFilled(namespace) ? { namespace } : {}),
    ...(isTexts(labels) ? { labels } : {}),
    ...(isTexts(annotations) && kind.only === undefined ? { annotations } : {}),
    ...(isFilled(deletionTimestamp) ? { deletionTimestamp } : {}),
  }
  const { spec, specs, status } = value
  return {
    kind: 'object',
    object: { ...namesOf(value, kind), metadata: read, specs, ...partsOf({ spec, status }, kind) },
  }
}

function partsOf(
  { spec, status }: Pick<KubernetesObject, 'spec' | 'status'>,
  { only }: ObjectKind,
): Pick<KubernetesObject, 'spec' | 'status'> {
  if (only === undefined) return { spec, status }
  return { spec: pick(spec, only.spec), status: pick(status, only.status) }
}

function pick(value: unknown, keys: readonly string[]): unknown {
  if (!isMapping(value)) return undefined
  return Object.fromEntries(keys.flatMap((key) => (key in value ? [[key, value[key]]] : [])))
}

/** Returns `metadata.resourceVersion`, which lists and bookmarks have too. */
export function readVersion(value: unknown): string | undefined {
  const metadata = isMapping(value) ? value['metadata'] : undefined
  const version = isMapping(metadata) ? metadata['resourceVersion'] : undefined
  return isFilled(version) ? version : undefined
}

function namesOf(value: Readonly<Record<string, unknown>>, kind: ObjectKind): ObjectKind {
  const own = { apiVersion: value['apiVersion'], kind: value['kind'] }
  return {
    apiVersion: isFilled(own.apiVersion) ? own.apiVersion : kind.apiVersion,
    kind: isFilled(own.kind) ? own.kind : kind.kind,
  }
}

function fault({ kind }: ObjectKind, found: string, expected: string, what = ''): ObjectResult {
  const name = what === '' ? kind : `${kind} ${what}`
  return { kind: 'fault', fault: `${name}: found ${found}, expected ${expected}` }
}

function isFilled(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}

function isTexts(value: unknown): value is Texts {
  return isMapping(value) && Object.values(value).every((each) => typeof each === 'string')
}
