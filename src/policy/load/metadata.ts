// `readMetadata` reads the metadata of a policy document: name, namespace and annotations. Fields that a cluster adds to an object (uid,
// managedFields and so on) are ignored, so that objects that were dumped from a cluster can be loaded.

import { suggestion, type FieldTable, type Reader } from '../../documents/source-document.ts'
import { DURATION_FORM, parseDuration } from '../../core/quantity.ts'
import type { Mutable } from '../compile/answer-rules.ts'
import { DEFAULT_NAMESPACE } from '../match/labels.ts'
import type { AnswerOverrides, Policy } from '../rule.ts'

export interface Metadata {
  readonly name: string
  /** Undefined for a clusterwide policy. */
  readonly namespace: string | undefined
  /** The reader of the name, for faults about the policy. */
  readonly reader: Reader
  readonly annotations: Annotations
}

/** The settings of the document's `namegate.io/` annotations. */
export interface Annotations {
  /** The annotations about answers. Undefined when the document has none. */
  readonly answers: AnswerOverrides | undefined
  /** True with `namegate.io/audit: "true"`. */
  readonly audited: boolean
  /** True with `namegate.io/allow-guarded: "true"`. */
  readonly allowsGuarded: boolean
}

export const METADATA: FieldTable = new Map(
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
    'description',
  ].map((key) => [key, true]),
)

export const OWN_ANNOTATION = 'namegate.io/'
const MIN_TTL = 'namegate.io/min-ttl'
const GRACE = 'namegate.io/grace-after-ttl'
const CNAME_MATCH = 'namegate.io/cname-match'
const SVCB = 'namegate.io/svcb'
const AUDIT = 'namegate.io/audit'
const ALLOW_GUARDED = 'namegate.io/allow-guarded'
/** The words of each annotation. Empty: a duration. */
export const ANNOTATIONS: ReadonlyMap<string, readonly string[]> = new Map([
  [MIN_TTL, []],
  [GRACE, []],
  [CNAME_MATCH, ['question', 'chain']],
  [SVCB, ['learn', 'strip', 'pass']],
  [AUDIT, ['true', 'false']],
  [ALLOW_GUARDED, ['true', 'false']],
])
const MS_PER_SECOND = 1000
/** The same maximum as for the configuration's `dns.min-ttl`: ten years. */
const TTL_MAX_MS = 10 * 365 * 86_400_000

/** Reads the metadata. Returns undefined after a fault in the name or namespace. */
export function readMetadata(
  reader: Reader | undefined,
  document: Reader,
  kind: Policy['kind'],
): Metadata | undefined {
  if (reader === undefined) return document.fault('found no metadata, expected metadata.name')
  const fields = reader.fields(METADATA)
  if (fields === undefined) return undefined
  const annotations = readAnnotations(fields.get('annotations'), kind)
  fields.get('labels')?.entries()
  fields.get('description')?.note('Kubernetes drops this field; spec.description is kept', 'key')
  const nameReader = fields.get('name')
  if (nameReader === undefined) return reader.fault('found no name, expected one')
  const name = readName(nameReader, 253, 'a name of letters a-z, digits, - and .')
  const namespaceReader = fields.get('namespace')
  if (kind === 'CiliumClusterwideNetworkPolicy' || kind === 'ClusterNetworkPolicy') {
    namespaceReader?.fault('found a namespace, expected none: the policy is clusterwide', 'key')
    return name === undefined
      ? undefined
      : { name, namespace: undefined, reader: nameReader, annotations }
  }
  const namespace =
    namespaceReader === undefined
      ? DEFAULT_NAMESPACE
      : readName(namespaceReader, 63, 'a namespace of letters a-z, digits and -')
  if (name === undefined || namespace === undefined) return undefined
  return { name, namespace, reader: nameReader, annotations }
}

/** Reads the name of an object (RFC 1123 subdomain) or namespace (no dots), of at most `max` characters. `what` is the form in faults. */
function readName(reader: Reader, max: number, what: string): string | undefined {
  const text = reader.text(what)
  if (text === undefined) return undefined
  const form = max > 63 ? /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/ : /^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/
  return text.length <= max && form.test(text) ? text : reader.expected(what)
}

/** Reads annotations of namegate, and ignores annotations of other programs. */
function readAnnotations(reader: Reader | undefined, kind: Policy['kind']): Annotations {
  let audited = false
  let allowsGuarded = false
  const answers: Mutable<AnswerOverrides> = {}
  for (const [key, value] of reader?.entries() ?? []) {
    if (!key.startsWith(OWN_ANNOTATION)) continue
    if (!ANNOTATIONS.has(key)) {
      value.fault(`unknown annotation${suggestion(key, ANNOTATIONS.keys())}`, 'key')
    } else if (key === AUDIT) {
      audited = readFlag(value)
      if (audited && kind === 'ClusterNetworkPolicy') {
        value.fault(`is not supported for a ${kind}: audit its endpoints with audit.endpoints`)
      }
    } else if (key === ALLOW_GUARDED) {
      allowsGuarded = readFlag(value)
    } else {
      readAnswer(key, value, answers)
    }
  }
  return {
    answers: Object.keys(answers).length === 0 ? undefined : answers,
    audited,
    allowsGuarded,
  }
}

/** Reads "true" or "false" as text, because the values of annotations are texts in Kubernetes. */
function readFlag(reader: Reader): boolean {
  const { value } = reader
  if (value !== 'true' && value !== 'false') reader.expected('"true" or "false", in quotes')
  return value === 'true'
}

function readAnswer(key: string, reader: Reader, answers: Mutable<AnswerOverrides>): void {
  const { value } = reader
  if (key === MIN_TTL || key === GRACE) {
    const ms = typeof value === 'string' ? parseDuration(value) : undefined
    if (ms === undefined || ms > TTL_MAX_MS) reader.expected(DURATION_FORM)
    else answers[key === GRACE ? 'grace' : 'minTtl'] = Math.ceil(ms / MS_PER_SECOND)
  } else if (key === CNAME_MATCH) {
    if (value === 'question' || value === 'chain') answers.cnameMatch = value
    else reader.expected('question or chain')
  } else if (value === 'learn' || value === 'strip' || value === 'pass') {
    answers.svcb = value
  } else {
    reader.expected('learn, strip or pass')
  }
}
