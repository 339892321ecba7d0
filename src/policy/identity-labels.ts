// IdentityLabels filters the labels of an endpoint down to those that make its identity (`endpoints.identity-labels`), like Cilium's
// identity-relevant labels. Policies see only these labels, both of the endpoints that they apply to and of peers. Labels that differ
// in every copy of a workload are left out, so that there are few identities. An endpoint without a cluster gets the label of this
// cluster.

import { CLUSTER_KEY, NAMESPACE_KEY, splitKey, splitLabel } from './match/labels.ts'

interface Entry {
  readonly source: string
  /** The whole key, or the beginning of the key. */
  readonly key: string
  readonly isBeginning: boolean
  readonly isKept: boolean
}

const CLUSTER = `k8s:${CLUSTER_KEY}`

export class IdentityLabels {
  readonly #entries: readonly Entry[]
  /** True if labels are kept that no entry names. */
  readonly #keepsOthers: boolean
  /** The label of the cluster, or an empty list. */
  readonly #cluster: readonly string[]
  /** The result for each list of labels, as long as the list exists. */
  readonly #known = new WeakMap<readonly string[], readonly string[]>()

  /**
   * `entries` are keys (`app`, `k8s:app`). An entry with a `*` at its end matches all keys with this beginning. An entry with a `!` in
   * front leaves keys out, any other entry keeps keys. The longest matching entry decides. If at least one entry keeps keys, keys without
   * a matching entry are left out; else they are kept. Namespace and cluster are always kept. `cluster`: the name of this cluster. Without
   * it, endpoints get no cluster label.
   */
  constructor(entries: readonly string[], cluster?: string) {
    this.#cluster = cluster === undefined ? [] : [`${CLUSTER}=${cluster}`]
    this.#entries = entries.map(entryOf)
    this.#keepsOthers = !this.#entries.some(({ isKept }) => isKept)
  }

  /** Returns the labels that policy sees, with the label of the cluster. Returns the same array if nothing was left out or added. */
  of(labels: readonly string[]): readonly string[] {
    const known = this.#known.get(labels)
    if (known !== undefined) return known
    const kept = labels.filter((label) => this.#keeps(label))
    const own = kept.some((label) => label.startsWith(`${CLUSTER}=`)) ? [] : this.#cluster
    const isSame = kept.length === labels.length && own.length === 0
    const result = isSame ? labels : [...kept, ...own]
    this.#known.set(labels, result)
    return result
  }

  #keeps(label: string): boolean {
    const { source, key } = splitLabel(label)
    if (source === 'k8s' && (key === NAMESPACE_KEY || key === CLUSTER_KEY)) return true
    let best: Entry | undefined
    for (const entry of this.#entries) {
      const fitsSource = entry.source === 'any' || entry.source === source
      const fits = entry.isBeginning ? key.startsWith(entry.key) : key === entry.key
      const isLonger = best === undefined || entry.key.length > best.key.length
      if (fitsSource && fits && isLonger) best = entry
    }
    return best?.isKept ?? this.#keepsOthers
  }
}

function entryOf(text: string): Entry {
  const isKept = !text.startsWith('!')
  const { source, key } = splitKey(isKept ? text : text.slice(1), 'any')
  const isBeginning = key.endsWith('*')
  return { source, key: isBeginning ? key.slice(0, -1) : key, isBeginning, isKept }
}

/**
 * The default of `endpoints.identity-labels`, which is Cilium's list. It leaves out labels of Kubernetes itself, labels that differ between
 * copies or versions of one workload, and labels that say where the workload runs.
 */
export const DEFAULT_IDENTITY_LABELS: readonly string[] = [
  '!io.kubernetes*',
  '!kubernetes.io*',
  '!statefulset.kubernetes.io/pod-name*',
  '!apps.kubernetes.io/pod-index*',
  '!batch.kubernetes.io/job-completion-index*',
  '!batch.kubernetes.io/controller-uid*',
  '!topology.kubernetes.io*',
  '!beta.kubernetes.io*',
  '!failure-domain.beta.kubernetes.io*',
  '!k8s.io*',
  '!pod-template-generation*',
  '!pod-template-hash*',
  '!controller-revision-hash*',
  '!controller-uid*',
  '!annotation*',
  '!etcd_node*',
]
