// Makes an endpoint of a pod: its addresses, the labels that policies select by, its named ports and its interface. The labels are those
// that Cilium gives a pod: the pod's own, its namespace and the namespace's labels, its service account, and the cluster. The namespace's
// label `namegate.io/default-egress` sets the default of its pods. A pod is left out when it has no address of its own, or has ended.

import type { Fault, Position } from '../../core/errors.ts'
import { formatPrefix, parseAddress, type Prefix } from '../../core/ip.ts'
import { SCTP, TCP, UDP } from '../../core/protocol.ts'
import type { EndpointRecord } from '../../endpoints/file.ts'
import { DEFAULT_EGRESS_KEY } from '../../policy/compile/default-egress.ts'
import { isPortName, type PortName } from '../../policy/compile/named-ports.ts'
import { NAMESPACE_LABELS } from '../../policy/load/selector.ts'
import {
  CLUSTER_KEY,
  formatLabel,
  labelKeyFault,
  labelValueFault,
  NAMESPACE_KEY,
} from '../../policy/match/labels.ts'
import { fieldAt, listAt, textAt } from './fields.ts'
import type { KubernetesObject } from '../reflector/objects.ts'
import type { Placement } from './placements.ts'

/** Why a pod is not an endpoint. */
export type LeftOut = 'host-network' | 'finished' | 'no-address' | 'no-namespace' | 'no-interface'

/** Why a pod is not an endpoint, as a sentence. `unknown`: no event has named it. */
export const WHY_NOT: Readonly<Record<LeftOut | 'unknown', string>> = {
  unknown: 'the API server has not reported the pod to namegate yet',
  'host-network': 'the pod is on the network of the host',
  finished: 'the pod has finished',
  'no-address': 'the pod has no address',
  'no-namespace': 'the namespace of the pod is not known yet',
  'no-interface': 'the pod has no interface on this node',
}

/** What namegate reads of a pod. */
export interface Pod {
  readonly namespace: string
  readonly name: string
  readonly uid: string
  readonly labels: Readonly<Record<string, string>>
  readonly serviceAccount: string
  readonly addresses: readonly string[]
  readonly ports: readonly PortName[]
  readonly isOnHostNetwork: boolean
  readonly hasFinished: boolean
}

const PROTOCOLS: ReadonlyMap<unknown, number> = new Map([
  [undefined, TCP],
  ['TCP', TCP],
  ['UDP', UDP],
  ['SCTP', SCTP],
])
const SERVICE_ACCOUNT_KEY = 'io.cilium.k8s.policy.serviceaccount'

/** Reads a pod. A field with an unexpected shape counts as absent, because the API server checks the shapes. */
export function readPod({ metadata, spec, status }: KubernetesObject): Pod {
  const { namespace = '', name, uid, labels = {} } = metadata
  const account = textAt(spec, 'serviceAccountName') ?? 'default'
  const containers = [...listAt(spec, 'initContainers'), ...listAt(spec, 'containers')]
  const phase = textAt(status, 'phase')
  const podIps = listAt(status, 'podIPs').map((each) => textAt(each, 'ip'))
  const addresses = new Set([...podIps, textAt(status, 'podIP')].filter((text) => !!text))
  return {
    namespace,
    name,
    uid,
    labels,
    serviceAccount: account,
    addresses: [...addresses].flatMap((text) => text ?? []),
    ports: containers.flatMap((each) => listAt(each, 'ports').flatMap(readPort)),
    isOnHostNetwork: fieldAt(spec, 'hostNetwork') === true,
    hasFinished: phase === 'Succeeded' || phase === 'Failed',
  }
}

/** Returns the part of a pod that `readPod` reads, which the state keeps. */
export function podDocument({ metadata, spec, status }: KubernetesObject): unknown {
  const { name, namespace, uid, labels } = metadata
  const portsOf = (key: string): unknown[] =>
    listAt(spec, key).map((each) => ({ ports: listAt(each, 'ports') }))
  return {
    metadata: { name, namespace, uid, labels },
    spec: {
      serviceAccountName: fieldAt(spec, 'serviceAccountName'),
      hostNetwork: fieldAt(spec, 'hostNetwork'),
      initContainers: portsOf('initContainers'),
      containers: portsOf('containers'),
    },
    status: {
      phase: fieldAt(status, 'phase'),
      podIP: fieldAt(status, 'podIP'),
      podIPs: fieldAt(status, 'podIPs'),
    },
  }
}

/** Returns the part of a pod of another node that is kept. `since`: the version at which the pod took its addresses. */
export function peerDocument(pod: Pod, since: string): unknown {
  const { name, namespace, uid, labels, serviceAccount, addresses } = pod
  return {
    metadata: { name, namespace, uid, labels, resourceVersion: since },
    spec: { serviceAccountName: serviceAccount },
    status: { podIPs: addresses.map((ip) => ({ ip })) },
  }
}

function readPort(value: unknown): readonly PortName[] {
  const name = textAt(value, 'name')
  const port = fieldAt(value, 'containerPort')
  const protocol = PROTOCOLS.get(fieldAt(value, 'protocol'))
  if (name === undefined || !isPortName(name) || protocol === undefined) return []
  return typeof port === 'number' && port >= 1 && port <= 65_535
    ? [{ name: name.toLowerCase(), protocol, port }]
    : []
}

/** What an endpoint of a pod needs besides the pod. */
export interface PodPlace {
  /** Where the network plugin put the pod. Undefined: the addresses of the API server, and the interface of the route to them, count. */
  readonly placement: Pick<Placement, 'interface' | 'addresses'> | undefined
  /** The labels of the pod's namespace. Undefined while the namespace is not known. */
  readonly namespaceLabels: Readonly<Record<string, string>> | undefined
  /** `kubernetes.cluster-name`. */
  readonly clusterName: string
  /** The interface of the node behind which the address is. Undefined while there is none. */
  readonly interfaceOf: (address: Prefix) => string | undefined
}

export type PodEndpoint =
  | {
      readonly kind: 'endpoint'
      readonly record: EndpointRecord
      readonly faults: readonly Fault[]
    }
  | { readonly kind: 'left-out'; readonly why: LeftOut }

/** Makes the endpoint of a pod. Its faults are labels that namegate cannot read. `object`: the name of the pod in faults. */
export function endpointOf(pod: Pod, place: PodPlace, object: string): PodEndpoint {
  const leftOut = (why: LeftOut): PodEndpoint => ({ kind: 'left-out', why })
  if (pod.isOnHostNetwork) return leftOut('host-network')
  if (pod.hasFinished) return leftOut('finished')
  const { placement } = place
  const texts = placement?.addresses ?? pod.addresses
  const addresses = texts.flatMap((text) => parseAddress(text) ?? [])
  const [first] = addresses
  if (first === undefined) return leftOut('no-address')
  if (place.namespaceLabels === undefined) return leftOut('no-namespace')
  const found = (): string | undefined =>
    addresses.map(place.interfaceOf).find((each) => each !== undefined)
  const name = placement?.interface ?? found()
  if (name === undefined) return leftOut('no-interface')
  const position: Position = { file: object, line: 0, column: 0 }
  const faults: Fault[] = []
  const record: EndpointRecord = {
    name: `${pod.namespace}/${pod.name}`,
    addresses: addresses.toSorted((a, b) => (formatPrefix(a) < formatPrefix(b) ? -1 : 1)),
    addressPositions: addresses.map(() => position),
    labels: podLabels(pod, place, (message) => faults.push({ position, message })),
    ...(pod.ports.length > 0 && { ports: pod.ports }),
    hook: { kind: 'interface', name, side: 'ingress' },
    audit: false,
    uid: pod.uid,
    position,
  }
  return { kind: 'endpoint', record, faults }
}

/** The labels of a pod that policies select by. */
export function podLabels(
  pod: Pod,
  { namespaceLabels = {}, clusterName }: Pick<PodPlace, 'namespaceLabels' | 'clusterName'>,
  onFault: (message: string) => void,
): readonly string[] {
  const labels = new Map<string, string>()
  const put = (key: string, value: string): void => {
    const expected = labelKeyFault(key) ?? labelValueFault(value)
    if (expected === undefined) labels.set(key, formatLabel({ source: 'k8s', key, value }))
    else onFault(`found the label ${JSON.stringify(key)}, expected ${expected}`)
  }
  // A pod's author chooses its labels, so they cannot set its default or say what its namespace is.
  for (const [key, value] of Object.entries(pod.labels)) {
    if (key !== DEFAULT_EGRESS_KEY && !key.startsWith(NAMESPACE_LABELS)) put(key, value)
  }
  for (const [key, value] of Object.entries(namespaceLabels)) {
    put(key === DEFAULT_EGRESS_KEY ? key : NAMESPACE_LABELS + key, value)
  }
  put(NAMESPACE_KEY, pod.namespace)
  put(SERVICE_ACCOUNT_KEY, pod.serviceAccount)
  put(CLUSTER_KEY, clusterName)
  return [...labels.values()].sort()
}
