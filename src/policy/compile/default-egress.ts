// `defaultEgressOf` decides the default of an endpoint that no policy puts into default deny (docs/spec/semantics 2): the node's
// `default-egress`, or the value of the endpoint's own label. An unknown value in the label means `deny`, so that a wrong label opens
// nothing. If the label is in a file, the file is refused, with line and column.

import { splitLabel } from '../match/labels.ts'

/** The values of `default-egress`. docs/spec/semantics 2 says what each value lets an endpoint reach. */
export const DEFAULT_EGRESS = ['allow', 'allow-named', 'allow-known', 'audit', 'deny'] as const
export type DefaultEgress = (typeof DEFAULT_EGRESS)[number]

/** The key of the label, of any label source, that gives an endpoint a default of its own. */
export const DEFAULT_EGRESS_KEY = 'namegate.io/default-egress'

export function isDefaultEgress(text: string): text is DefaultEgress {
  return DEFAULT_EGRESS.some((each) => each === text)
}

/** Returns the default of an endpoint with these labels. `node` is the node's default. Labels that contradict each other mean `deny`. */
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
