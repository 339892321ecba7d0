// The labels of an endpoint that make its identity (`endpoints.identity-labels`), as Cilium's identity-relevant labels. Policies
// see these labels alone, of subjects and of peers. Leaving out labels that differ in every copy of a workload keeps identities
// few. An endpoint without a cluster gets the label of this cluster.

import { CLUSTER_KEY, NAMESPACE_KEY, splitKey, splitLabel } from './match/labels.ts'

interface Entry {
  readonly source: string
  /** Whole, or its beginning. */
  readonly key: string
  readonly isBeginning: boolean
  readonly isKept: boolean
}

const CLUSTER = `k8s:${CLUSTER_KEY}`

export class IdentityLabels {
  readonly #entries: readonly Entry[]
  /** What becomes of a label that no entry is about. */
  readonly #keepsOthers: boolean
  /** The label of the cluster, if any. */
  readonly #cluster: readonly string[]
  /** What became of lists of labels that are still there. */
  readonly #known = new WeakMap<readonly string[], readonly string[]>()

  /**
   * Entries are keys (`app`, `k8s:app`), with `*` at the end the beginning of keys, with `!` in front what is left out.
   * The longest that fits decides; where an entry says what is kept, nothing else is. Namespace and cluster are always
   * kept. Without a cluster's name endpoints get no label of one.
   */
  constructor(entries: readonly string[], cluster?: string) {
    this.#cluster = cluster === undefined ? [] : [`${CLUSTER}=${cluster}`]
    this.#entries = entries.map(entryOf)
    this.#keepsOthers = !this.#entries.some(({ isKept }) => isKept)
  }

  /** The labels that count, with that of the cluster; the same array when they are all there are. */
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
 * The default of `endpoints.identity-labels`: Cilium's list. Left out are labels that differ between copies or versions of one
 * workload, that say where it runs, and those of Kubernetes itself.
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
