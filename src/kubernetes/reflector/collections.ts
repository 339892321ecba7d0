// Lists the collections that namegate reads, and makes the paths of their requests. A target is one collection in one namespace, or in all;
// each target has a reflector.

import type { ObjectKind } from './objects.ts'

export interface Resource extends ObjectKind {
  /** The name of the kind in paths and in rules of RBAC. */
  readonly resource: string
}

export interface Collection extends Resource {
  /** The key in the configuration. */
  readonly name: string
  readonly isNamespaced: boolean
  /** The nodes whose objects are read. */
  readonly nodes: 'this' | 'others' | 'all'
}

/** All collections. One name of the configuration can stand for several. */
export const COLLECTIONS: readonly Collection[] = [
  {
    name: 'pods',
    apiVersion: 'v1',
    kind: 'Pod',
    resource: 'pods',
    isNamespaced: true,
    nodes: 'this',
  },
  {
    // Pods, too. The name of the kind is namegate's own, so that views and kept objects tell them apart.
    name: 'peers',
    apiVersion: 'v1',
    kind: 'Peer',
    resource: 'pods',
    isNamespaced: true,
    nodes: 'others',
    only: {
      spec: ['serviceAccountName', 'hostNetwork'],
      status: ['phase', 'podIP', 'podIPs'],
    },
  },
  {
    name: 'namespaces',
    apiVersion: 'v1',
    kind: 'Namespace',
    resource: 'namespaces',
    isNamespaced: false,
    nodes: 'all',
  },
  {
    name: 'network-policies',
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    resource: 'networkpolicies',
    isNamespaced: true,
    nodes: 'all',
  },
  {
    name: 'cilium-policies',
    apiVersion: 'cilium.io/v2',
    kind: 'CiliumNetworkPolicy',
    resource: 'ciliumnetworkpolicies',
    isNamespaced: true,
    nodes: 'all',
  },
  {
    name: 'cilium-policies',
    apiVersion: 'cilium.io/v2',
    kind: 'CiliumClusterwideNetworkPolicy',
    resource: 'ciliumclusterwidenetworkpolicies',
    isNamespaced: false,
    nodes: 'all',
  },
  {
    name: 'cluster-network-policies',
    apiVersion: 'policy.networking.k8s.io/v1alpha2',
    kind: 'ClusterNetworkPolicy',
    resource: 'clusternetworkpolicies',
    isNamespaced: false,
    nodes: 'all',
  },
]

export interface Target {
  readonly collection: Collection
  /** Undefined: all namespaces, or a collection without namespaces. */
  readonly namespace: string | undefined
  /** The path of the collection, without a query. */
  readonly path: string
  /** The selector of the requests, as parts of a query. */
  readonly selector: readonly (readonly [key: string, value: string])[]
}

export interface TargetChoice {
  readonly names: readonly string[]
  /** The name of this node in the cluster. */
  readonly node: string
  /** Empty: all namespaces. */
  readonly namespaces: readonly string[]
}

/** Returns the targets of the named collections. A namespaced collection has one target for each configured namespace. */
export function targetsOf({ names, node, namespaces }: TargetChoice): readonly Target[] {
  return COLLECTIONS.filter(({ name }) => names.includes(name)).flatMap((collection) => {
    const places = collection.isNamespaced && namespaces.length > 0 ? namespaces : [undefined]
    return places.map((namespace) => targetOf(collection, namespace, node))
  })
}

export function targetOf(
  collection: Collection,
  namespace: string | undefined,
  node: string,
): Target {
  const place = namespace === undefined ? '' : `/namespaces/${encodeURIComponent(namespace)}`
  return {
    collection,
    namespace,
    path: `${groupPath(collection)}${place}/${collection.resource}`,
    selector: NODE_SELECTORS[collection.nodes](node),
  }
}

const NODE_SELECTORS: Readonly<Record<Collection['nodes'], (node: string) => Target['selector']>> =
  {
    this: (node) => [['fieldSelector', `spec.nodeName=${node}`]],
    others: (node) => [['fieldSelector', `spec.nodeName!=${node}`]],
    all: () => [],
  }

/** The path of a group and version: its discovery document is there, and its collections are below. */
export function groupPath({ apiVersion }: ObjectKind): string {
  return apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`
}

/** The API group, as rules of RBAC name it. The core group is `""`. */
export function groupOf({ apiVersion }: ObjectKind): string {
  return apiVersion.includes('/') ? apiVersion.slice(0, apiVersion.indexOf('/')) : ''
}

/** Describes the rule of RBAC that a request needs. */
export function describeRule(
  { collection, namespace }: Pick<Target, 'namespace'> & { readonly collection: Resource },
  verb: string,
): string {
  const place = namespace === undefined ? 'in a ClusterRole' : `in namespace ${namespace}`
  return `verb ${verb} for resource ${collection.resource} of API group "${groupOf(collection)}" ${place}`
}
