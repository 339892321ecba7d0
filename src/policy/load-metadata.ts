// The metadata of a policy document: name, namespace, annotations. What a cluster adds to an object
// (uid, managedFields and so on) may stand there and means nothing here, so that a dump can be loaded.

import { suggestion, type FieldTable, type Reader } from '../core/source-document.ts'
import { DEFAULT_NAMESPACE } from './labels.ts'
import type { Policy } from './rule.ts'

export interface Metadata {
  readonly name: string
  /** Undefined for a clusterwide policy. */
  readonly namespace: string | undefined
  readonly reader: Reader
}

const METADATA: FieldTable = new Map(
  [
    'name',
    'namespace',
    'annotations',
    'labels',
    'uid',
    'resourceVersion',
    'generation',
    'creationTimestamp',
    'deletionTimestamp',
    'deletionGracePeriodSeconds',
    'managedFields',
    'ownerReferences',
    'finalizers',
    'selfLink',
    'generateName',
  ].map((key) => [key, true]),
)

const OWN_ANNOTATION = 'namegate.io/'
/** Annotations of ours and the value that is as good as none; undefined: every value needs what isn't built. */
const ANNOTATIONS: ReadonlyMap<string, string | undefined> = new Map([
  ['namegate.io/min-ttl', undefined],
  ['namegate.io/grace-after-ttl', undefined],
  ['namegate.io/cname-match', 'question'],
  ['namegate.io/svcb', 'pass'],
  ['namegate.io/audit', 'false'],
  ['namegate.io/allow-guarded', undefined],
])

/** Reads the metadata; undefined when there is no usable name or namespace. */
export function readMetadata(
  reader: Reader | undefined,
  document: Reader,
  kind: Policy['kind'],
): Metadata | undefined {
  if (reader === undefined) return document.fault('found no metadata, expected metadata.name')
  const fields = reader.fields(METADATA)
  if (fields === undefined) return undefined
  readAnnotations(fields.get('annotations'))
  fields.get('labels')?.entries()
  const nameReader = fields.get('name')
  if (nameReader === undefined) return reader.fault('found no name, expected one')
  const name = readName(nameReader, 253, 'a name of letters a-z, digits, - and .')
  const namespaceReader = fields.get('namespace')
  if (kind === 'CiliumClusterwideNetworkPolicy') {
    namespaceReader?.fault('found a namespace, expected none: the policy is clusterwide', 'key')
    return name === undefined ? undefined : { name, namespace: undefined, reader: nameReader }
  }
  const namespace =
    namespaceReader === undefined
      ? DEFAULT_NAMESPACE
      : readName(namespaceReader, 63, 'a namespace of letters a-z, digits and -')
  if (name === undefined || namespace === undefined) return undefined
  return { name, namespace, reader: nameReader }
}

/** A Kubernetes object name (RFC 1123 subdomain; a namespace has no dots). */
function readName(reader: Reader, max: number, what: string): string | undefined {
  const text = reader.text(what)
  if (text === undefined) return undefined
  const form = max > 63 ? /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/ : /^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/
  return text.length <= max && form.test(text) ? text : reader.expected(what)
}

function readAnnotations(reader: Reader | undefined): void {
  for (const [key, value] of reader?.entries() ?? []) {
    if (!key.startsWith(OWN_ANNOTATION)) continue
    if (!ANNOTATIONS.has(key)) {
      value.fault(`unknown annotation${suggestion(key, ANNOTATIONS.keys())}`, 'key')
    } else if (value.value !== ANNOTATIONS.get(key)) {
      value.fault('is not built yet', 'key')
    }
  }
}
