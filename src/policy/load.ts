// Policy files -> the internal rule type (rule.ts): CiliumNetworkPolicy and CiliumClusterwideNetworkPolicy of
// cilium.io/v2. What Cilium knows and we don't do yet is a fault that names the field, never ignored, because
// a rule half understood is another rule. Pure: text in, policies or faults out.

import { formatPlace, type Fault, type Position } from '../core/errors.ts'
import { objectDocument } from '../core/object-source.ts'
import { Reader, type FieldTable, type SourceDocument } from '../core/source-document.ts'
import { parseYaml } from '../config/yaml-source.ts'
import { readMetadata } from './load-metadata.ts'
import { readSpec } from './load-spec.ts'
import type { Policy } from './rule.ts'

export interface LoadOptions {
  /**
   * Policies seen so far, `kind namespace/name` -> place. Given the same map for several files, a policy
   * that is there twice is a fault; the map is added to.
   */
  readonly seen?: Map<string, Position>
}

/** With faults there are no policies: a file is taken whole or not at all. */
export interface LoadedPolicies {
  readonly policies: readonly Policy[]
  readonly faults: readonly Fault[]
}

const DOCUMENT: FieldTable = new Map([
  ['apiVersion', true],
  ['kind', true],
  ['metadata', true],
  ['spec', true],
  ['specs', true],
  ['status', true],
])

const API_VERSION = 'cilium.io/v2'
const NOT_BUILT: ReadonlyMap<string, string> = new Map([
  ['NetworkPolicy', 'is not built yet'],
  ['List', 'is not supported: write its items as documents of their own'],
  ['CiliumNetworkPolicyList', 'is not supported: write its items as documents of their own'],
  ['ClusterNetworkPolicy', 'is not supported'],
  ['AdminNetworkPolicy', 'is not supported'],
  ['CiliumCIDRGroup', 'is not supported'],
  ['CiliumLocalRedirectPolicy', 'is not supported'],
  ['CiliumEgressGatewayPolicy', 'is not supported'],
])

/** Loads every document of a file; empty documents are skipped. Never throws on any text. */
export function loadPolicies(
  text: string,
  file: string,
  options: LoadOptions = {},
): LoadedPolicies {
  const { documents, faults } = parseYaml(text, file)
  const written = documents.filter(({ value }) => value !== null)
  return loadDocuments(written, faults, options)
}

/** The same of documents given as an object, or a list of them; `name` stands for the file in faults. */
export function loadPolicyObjects(value: unknown, name: string): LoadedPolicies {
  const given: readonly unknown[] = Array.isArray(value) ? value : [value]
  const read = given.map((each) => objectDocument(each, name))
  const documents = read.map(({ document }) => document)
  const faults = read.flatMap((each) => each.faults)
  return faults.length > 0 ? { policies: [], faults } : loadDocuments(documents, [], {})
}

function loadDocuments(
  documents: readonly SourceDocument[],
  syntax: readonly Fault[],
  options: LoadOptions,
): LoadedPolicies {
  const faults = [...syntax]
  const policies: Policy[] = []
  const seen = options.seen ?? new Map<string, Position>()
  for (const document of documents) policies.push(...loadDocument(document, faults, seen))
  faults.sort(({ position: a }, { position: b }) => a.line - b.line || a.column - b.column)
  return { policies: faults.length > 0 ? [] : policies, faults }
}

function loadDocument(
  document: SourceDocument,
  faults: Fault[],
  seen: Map<string, Position>,
): readonly Policy[] {
  const reader = new Reader(document, faults)
  const kind = readKind(reader)
  if (kind === undefined) return []
  const fields = reader.fields(DOCUMENT)
  const metadata = readMetadata(fields?.get('metadata'), reader, kind)
  const specs = fields === undefined ? [] : readSpecs(reader, fields)
  if (metadata === undefined) return []
  const key = `${kind} ${metadata.namespace ?? ''}/${metadata.name}`
  const first = seen.get(key)
  if (first !== undefined) {
    const where = formatPlace(first)
    metadata.reader.fault(`found the ${key.replace(' /', ' ')} again, first at ${where}`)
  } else {
    seen.set(key, metadata.reader.position)
  }
  const { name, namespace } = metadata
  return specs.flatMap((spec) => {
    const read = readSpec(spec, namespace)
    return read === undefined ? [] : [{ name, namespace, kind, ...read }]
  })
}

/** `spec`, `specs` or both, as in Cilium. */
function readSpecs(document: Reader, fields: ReadonlyMap<string, Reader>): readonly Reader[] {
  const spec = fields.get('spec')
  const specs = fields.get('specs')
  if (spec === undefined && specs === undefined) {
    document.fault('found no spec, expected spec or specs')
  }
  return [...(spec === undefined ? [] : [spec]), ...(specs?.items() ?? [])]
}

/** The kind, when it's one that is loaded; a document of another kind gets this one fault only. */
function readKind(document: Reader): Policy['kind'] | undefined {
  const all = document.entries('a policy: a mapping with apiVersion, kind, metadata and spec')
  if (all === undefined) return undefined
  const fields = new Map(all)
  const kind = fields.get('kind')
  const refused = typeof kind?.value === 'string' ? NOT_BUILT.get(kind.value) : undefined
  if (kind !== undefined && refused !== undefined) return kind.fault(refused)
  const apiVersion = fields.get('apiVersion')
  if (apiVersion === undefined)
    return document.fault(`found no apiVersion, expected ${API_VERSION}`)
  if (apiVersion.value !== API_VERSION) return apiVersion.expected(API_VERSION)
  if (kind?.value === 'CiliumNetworkPolicy') return 'CiliumNetworkPolicy'
  if (kind?.value === 'CiliumClusterwideNetworkPolicy') return 'CiliumClusterwideNetworkPolicy'
  const expected = 'CiliumNetworkPolicy or CiliumClusterwideNetworkPolicy'
  return kind === undefined
    ? document.fault(`found no kind, expected ${expected}`)
    : kind.expected(expected)
}
