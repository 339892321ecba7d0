// The default of an endpoint that no policy puts into default deny (docs/spec/semantics 2): the node's `default-egress`, or the
// endpoint's own label. An unknown value of the label gives no access: sources refuse it with file, line and column, and a label
// from elsewhere must not open anything.

import { splitLabel } from '../match/labels.ts'

export const DEFAULT_EGRESS = ['allow', 'allow-named', 'allow-known', 'audit', 'deny'] as const
export type DefaultEgress = (typeof DEFAULT_EGRESS)[number]

/** Key of the label, of any source, by which an endpoint has a default of its own. */
export const DEFAULT_EGRESS_KEY = 'namegate.io/default-egress'

export function isDefaultEgress(text: string): text is DefaultEgress {
  return DEFAULT_EGRESS.some((each) => each === text)
}

/** The default of an endpoint with these labels on a node with this one. */
export function defaultEgressOf(labels: readonly string[], node: DefaultEgress): DefaultEgress {
  const said = new Set<string>()
  for (const label of labels) {
    if (!label.includes(DEFAULT_EGRESS_KEY)) continue
    const { key, value } = splitLabel(label)
    if (key === DEFAULT_EGRESS_KEY) said.add(value)
  }
  const [only] = said
  if (only === undefined) return node
  return said.size === 1 && isDefaultEgress(only) ? only : 'deny'
}
