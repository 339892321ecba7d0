// `shownLabels` chooses the labels that people read. The label of the default cluster says nothing on a host without a cluster, and the same of
// every endpoint of a cluster without a name. JSON has all labels.

import { CLUSTER_KEY, DEFAULT_CLUSTER } from '../policy/match/labels.ts'
import { listOf } from './fields.ts'

const LEFT_OUT = `k8s:${CLUSTER_KEY}=${DEFAULT_CLUSTER}`

export function shownLabels(labels: unknown): readonly unknown[] {
  return listOf(labels).filter((label) => label !== LEFT_OUT)
}
