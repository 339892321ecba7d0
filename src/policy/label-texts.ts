// Labels of an endpoint as a person writes them who asks about policies: `app=web,env=prod`, each with a source in front
// where it matters (`k8s:app=web`). Without one a label is tried as `external` and as `k8s`, so that policy finds it whatever
// source it names; but the namespace label, which only Kubernetes gives.

import {
  DEFAULT_SOURCE,
  formatLabel,
  labelKeyFault,
  labelValueFault,
  NAMESPACE_KEY,
  splitKey,
} from './match/labels.ts'

export type LabelsResult =
  | { readonly kind: 'ok'; readonly labels: readonly string[] }
  | { readonly kind: 'bad'; readonly reason: string }

/** Sorted `source:key=value`; an empty text is no label. */
export function parseLabels(text: string): LabelsResult {
  const labels = new Set<string>()
  for (const part of text.split(',')) {
    const trimmed = part.trim()
    if (trimmed === '') continue
    const read = parseLabel(trimmed)
    if (read.kind === 'bad') return read
    for (const label of read.labels) labels.add(label)
  }
  return { kind: 'ok', labels: [...labels].sort() }
}

/** One of them. */
export function parseLabel(text: string): LabelsResult {
  const equals = text.indexOf('=')
  const written = equals < 0 ? text : text.slice(0, equals)
  const value = equals < 0 ? '' : text.slice(equals + 1)
  const fault = labelKeyFault(written) ?? labelValueFault(value)
  if (fault !== undefined) {
    return { kind: 'bad', reason: `found ${JSON.stringify(text)}, expected ${fault}` }
  }
  const sources = written === NAMESPACE_KEY ? ['k8s'] : [DEFAULT_SOURCE, 'k8s']
  const { source, key } = splitKey(written, '')
  const given = source === '' ? sources : [source]
  return { kind: 'ok', labels: given.map((each) => formatLabel({ source: each, key, value })) }
}
