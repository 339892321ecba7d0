// Labels of an endpoint as a person writes them in one line: `app=web,env=prod`, each with a source in front where it
// matters (`k8s:app=web`). Without one it is `external`, but the namespace label, which only Kubernetes gives.

import {
  DEFAULT_SOURCE,
  formatLabel,
  labelKeyFault,
  labelValueFault,
  NAMESPACE_KEY,
  splitKey,
} from './labels.ts'

export type LabelsResult =
  | { readonly kind: 'ok'; readonly labels: readonly string[] }
  | { readonly kind: 'bad'; readonly reason: string }

/** Sorted `source:key=value`; an empty text is no label. */
export function parseLabels(text: string): LabelsResult {
  const labels = new Map<string, string>()
  for (const part of text.split(',')) {
    const trimmed = part.trim()
    if (trimmed === '') continue
    const read = parseLabel(trimmed)
    if (read.kind === 'bad') return read
    labels.set(read.key, read.label)
  }
  return { kind: 'ok', labels: [...labels.values()].sort() }
}

type LabelResult =
  | { readonly kind: 'ok'; readonly key: string; readonly label: string }
  | { readonly kind: 'bad'; readonly reason: string }

function parseLabel(text: string): LabelResult {
  const equals = text.indexOf('=')
  const written = equals < 0 ? text : text.slice(0, equals)
  const value = equals < 0 ? '' : text.slice(equals + 1)
  const fault = labelKeyFault(written) ?? labelValueFault(value)
  if (fault !== undefined) {
    return { kind: 'bad', reason: `found ${JSON.stringify(text)}, expected ${fault}` }
  }
  const byDefault = written === NAMESPACE_KEY ? 'k8s' : DEFAULT_SOURCE
  const { source, key } = splitKey(written, byDefault)
  return { kind: 'ok', key: `${source}:${key}`, label: formatLabel({ source, key, value }) }
}
