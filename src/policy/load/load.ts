// `loadPolicies` turns policy files into the internal rule type (rule.ts). It reads CiliumNetworkPolicy and CiliumClusterwideNetworkPolicy
// of cilium.io/v2, NetworkPolicy of networking.k8s.io/v1, ClusterNetworkPolicy of policy.networking.k8s.io/v1alpha2, and allow-lists. A known
// field that namegate does not support is a fault, because without the field the rule would mean something else. With `unsupportedFields: warn` the field is a warning, and the rule that contains
// it allows nothing. The loader has no side effects.

import { formatPlace, type Fault, type Position } from '../../core/errors.ts'
import { objectDocument } from '../../documents/object-source.ts'
import {
  isMapping,
  listWords,
  Reader,
  type FieldTable,
  type SourceDocument,
} from '../../documents/source-document.ts'
import { parseDocuments } from '../../documents/quick-documents.ts'
import { DEFAULT_NAMESPACE } from '../match/labels.ts'
import { isAllowList } from '../allow-line.ts'
import { loadAllowList, toEnd } from './allow-list.ts'
import { readClusterSpec } from './cluster-network-policy.ts'
import { readMetadata } from './metadata.ts'
import { readNetworkSpec } from './network-policy.ts'
import { readSpec, type Spec } from './spec.ts'
import type { Policy, PolicyKind } from '../rule.ts'

export interface LoadOptions {
  /**
   * Policies seen so far, `kind namespace/name` -> place. The loader adds each policy that it reads. If several files are loaded with one
   * map, a policy that is in two of the files is a fault.
   */
  readonly seen?: Map<string, Position>
  /** `error`: rules for ingress are a fault. `ignore`: they are left out, and their policy is `halfEnforced`. Default: error. */
  readonly ingress?: 'error' | 'ignore'
  /** `error`: known fields that namegate does not support are faults. `warn`: they are warnings. Default: error. */
  readonly unsupportedFields?: 'error' | 'warn'
  /** `policies.cidr-matches-endpoints`. Without it, `networks` of a ClusterNetworkPolicy are a fault. Default: false. */
  readonly cidrMatchesEndpoints?: boolean
  /** Receives notes on text that a reader can easily misunderstand, for `policy lint`. */
  readonly notes?: Fault[]
  /** Labels of the endpoints that allow-lists apply to. Default: all endpoints. */
  readonly allowListEndpoints?: ReadonlyMap<string, string>
}

/** The longest policy file in UTF-16 units. About ten thousand policies fit. */
export const POLICY_TEXT_MAX = 8 * 2 ** 20

/** The result of loading one file. If there are faults, there are no policies: a file is accepted or refused as a whole. */
export interface LoadedPolicies {
  readonly policies: readonly Policy[]
  readonly faults: readonly Fault[]
  /** Unsupported fields that were left out (`unsupportedFields: warn`). */
  readonly warnings: readonly Fault[]
}

export const DOCUMENT: FieldTable = new Map([
  ['apiVersion', true],
  ['kind', true],
  ['metadata', true],
  ['spec', true],
  ['specs', true],
  ['status', true],
])

export const API_VERSION = 'cilium.io/v2'
export const NETWORK_API = 'networking.k8s.io/v1'
export const CLUSTER_API = 'policy.networking.k8s.io/v1alpha2'
/** The kinds of policy documents, and the version of the API that each belongs to. */
export const API_OF = {
  CiliumNetworkPolicy: API_VERSION,
  CiliumClusterwideNetworkPolicy: API_VERSION,
  NetworkPolicy: NETWORK_API,
  ClusterNetworkPolicy: CLUSTER_API,
} as const satisfies Record<Exclude<PolicyKind, 'AllowList'>, string>
const KINDS = [
  'CiliumNetworkPolicy',
  'CiliumClusterwideNetworkPolicy',
  'NetworkPolicy',
  'ClusterNetworkPolicy',
] as const
const OTHER_KINDS: ReadonlyMap<string, string> = new Map([
  ['List', 'is not supported: write its items as documents of their own'],
  ['CiliumNetworkPolicyList', 'is not supported: write its items as documents of their own'],
  ['AdminNetworkPolicy', 'is not supported: write a ClusterNetworkPolicy of v1alpha2'],
  ['BaselineAdminNetworkPolicy', 'is not supported: write a ClusterNetworkPolicy of v1alpha2'],
  ['CiliumCIDRGroup', 'is not supported'],
  ['CiliumLocalRedirectPolicy', 'is not supported'],
  ['CiliumEgressGatewayPolicy', 'is not supported'],
])

/** Loads every document of a file, and skips empty documents. A file with only empty documents is a fault. Never throws on any text. */
export function loadPolicies(
  text: string,
  file: string,
  options: LoadOptions = {},
): LoadedPolicies {
  if (text.length > POLICY_TEXT_MAX) {
    const message = `found ${text.length} characters, expected at most ${POLICY_TEXT_MAX}: write several files`
    const fault = { position: { file, line: 1, column: 1 }, message }
    return { policies: [], faults: [fault], warnings: [] }
  }
  if (isAllowList(file)) {
    const selector = { matchLabels: options.allowListEndpoints ?? new Map<string, string>() }
    return { ...loadAllowList(text, file, selector), warnings: [] }
  }
  const { documents, faults } = parseDocuments(text, file)
  const written = documents.filter(({ value }) => value !== null)
  const isEmpty = written.length === 0 && faults.length === 0
  return loadDocuments(written, isEmpty ? [nothingIn(file)] : faults, options)
}

/** The fault of a file without a policy. With this fault, an emptied file keeps its last policies in force. */
function nothingIn(file: string): Fault {
  const message = `found no policy, expected one at least: ${toEnd('its policies')}`
  return { position: { file, line: 1, column: 1 }, message }
}

/** Loads a document that is given as an object, or a list of such documents. Faults use `name` in place of a file name. */
export function loadPolicyObjects(
  value: unknown,
  name: string,
  options: LoadOptions = {},
): LoadedPolicies {
  const given: readonly unknown[] = Array.isArray(value) ? value : [value]
  const read = given.map((each) => objectDocument(each, name))
  const documents = read.map(({ document }) => document)
  const faults = read.flatMap((each) => each.faults)
  return faults.length > 0
    ? { policies: [], faults, warnings: [] }
    : loadDocuments(documents, [], options)
}

function loadDocuments(
  documents: readonly SourceDocument[],
  syntax: readonly Fault[],
  options: LoadOptions,
): LoadedPolicies {
  const faults = [...syntax]
  const warnings: Fault[] = []
  const policies: Policy[] = []
  const seen = options.seen ?? new Map<string, Position>()
  for (const document of documents) {
    const unsupported = options.unsupportedFields === 'warn' ? warnings : undefined
    const reader = new Reader(document, { faults, warnings: unsupported, notes: options.notes })
    const isList = Array.isArray(document.value) && document.value.length > 0
    const read = isList ? loadRuleList : loadDocument
    policies.push(...read(reader, seen, options))
  }
  faults.sort(byPlace)
  warnings.sort(byPlace)
  return { policies: faults.length > 0 ? [] : policies, faults, warnings }
}

function byPlace({ position: a }: Fault, { position: b }: Fault): number {
  return a.line - b.line || a.column - b.column
}

function loadDocument(
  reader: Reader,
  seen: Map<string, Position>,
  options: LoadOptions,
): readonly Policy[] {
  const kind = readKind(reader)
  if (kind === undefined) return []
  const fields = reader.fields(DOCUMENT)
  const metadata = readMetadata(fields?.get('metadata'), reader, kind)
  const specs = fields === undefined ? [] : readSpecs(reader, fields, kind)
  if (metadata === undefined) return []
  const { name, namespace } = metadata
  const first = firstPlace(seen, { kind, namespace, name, position: metadata.reader.position })
  if (first !== undefined) {
    const key = `${kind} ${namespace === undefined ? '' : `${namespace}/`}${name}`
    metadata.reader.fault(`found the ${key} again, first at ${first}`)
  }
  const { answers, audited, allowsGuarded } = metadata.annotations
  return specs.flatMap((spec) => {
    const read = readSpecOf(kind, spec, namespace, options)
    return read === undefined
      ? []
      : [
          {
            name,
            namespace,
            kind,
            ...read,
            ...(audited && { audited }),
            ...(allowsGuarded && { allowsGuarded }),
            ...(answers && { answers }),
          },
        ]
  })
}

function readSpecOf(
  kind: PolicyKind,
  spec: Reader,
  namespace: string | undefined,
  { ingress = 'error', cidrMatchesEndpoints = false }: LoadOptions,
): (Spec & Pick<Policy, 'tier'>) | undefined {
  switch (kind) {
    case 'NetworkPolicy':
      return readNetworkSpec(spec, namespace ?? DEFAULT_NAMESPACE, ingress)
    case 'ClusterNetworkPolicy':
      return readClusterSpec(spec, { ingress, cidrMatchesEndpoints })
    case 'CiliumNetworkPolicy':
    case 'CiliumClusterwideNetworkPolicy':
    case 'AllowList':
      return readSpec(spec, namespace, ingress)
  }
}

/**
 * Reads a list of rules in the old form of Cilium's agent, where each item is a spec. The item has no name and no namespace, so it
 * becomes the clusterwide policy `FILE-NUMBER`, such as `web-1`.
 */
function loadRuleList(
  reader: Reader,
  seen: Map<string, Position>,
  { ingress }: LoadOptions,
): readonly Policy[] {
  const kind = 'CiliumClusterwideNetworkPolicy'
  reader.note('a list of rules without names; each is read as a clusterwide policy')
  return (reader.items() ?? []).flatMap((item, i) => {
    if (isMapping(item.value) && 'kind' in item.value) {
      return item.fault('found a policy in a list, expected a rule: write it as a document') ?? []
    }
    const spec = readSpec(item, undefined, ingress)
    if (spec === undefined) return []
    const name = `${nameOfFile(spec.position.file)}-${i + 1}`
    const policy = { name, namespace: undefined, kind, ...spec } as const
    const first = firstPlace(seen, policy)
    if (first === undefined) return [policy]
    return item.fault(`found ${name} again, first at ${first}: rename the file`) ?? []
  })
}

/** Returns the place of an earlier policy with the same kind, namespace and name. If there is none, records this policy in `seen`. */
function firstPlace(
  seen: Map<string, Position>,
  policy: Pick<Policy, 'kind' | 'namespace' | 'name' | 'position'>,
): string | undefined {
  const { kind, namespace, name, position } = policy
  const key = `${kind} ${namespace ?? ''}/${name}`
  const first = seen.get(key)
  if (first !== undefined) return formatPlace(first)
  seen.set(key, position)
  return undefined
}

/** Returns `web` for `some/web.json`. */
function nameOfFile(file: string): string {
  return file.replace(/^.*\//, '').replace(/\.[a-z]+$/, '')
}

/** Returns the readers of `spec` and of the items of `specs`. A document can have both, as in Cilium. Other policies have only `spec`. */
function readSpecs(
  document: Reader,
  fields: ReadonlyMap<string, Reader>,
  kind: PolicyKind,
): readonly Reader[] {
  const spec = fields.get('spec')
  const specs = fields.get('specs')
  if (kind === 'NetworkPolicy' || kind === 'ClusterNetworkPolicy') {
    specs?.fault(`found specs, expected spec: this is a ${kind}`, 'key')
    if (spec === undefined) document.fault('found no spec, expected one')
    return spec === undefined ? [] : [spec]
  }
  if (spec === undefined && specs === undefined) {
    document.fault('found no spec, expected spec or specs')
  }
  const items = specs?.items() ?? []
  if (spec === undefined && Array.isArray(specs?.value) && items.length === 0) {
    specs.fault('found an empty list, expected one spec at least')
  }
  return [...(spec === undefined ? [] : [spec]), ...items]
}

/** Returns the kind if namegate supports it. Otherwise reports one fault for the document. */
function readKind(document: Reader): PolicyKind | undefined {
  const all = document.entries('a policy: a mapping with apiVersion, kind, metadata and spec')
  if (all === undefined) return undefined
  const fields = new Map(all)
  const kind = fields.get('kind')
  const refused = typeof kind?.value === 'string' ? OTHER_KINDS.get(kind.value) : undefined
  if (kind !== undefined && refused !== undefined) return kind.fault(refused)
  const known = KINDS.find((each) => each === kind?.value)
  const version = API_OF[known ?? 'CiliumNetworkPolicy']
  const apiVersion = fields.get('apiVersion')
  if (apiVersion === undefined) return document.fault(`found no apiVersion, expected ${version}`)
  if (apiVersion.value !== version) return apiVersion.expected(version)
  if (known !== undefined) return known
  const expected = listWords(KINDS)
  return kind === undefined
    ? document.fault(`found no kind, expected ${expected}`)
    : kind.expected(expected)
}
