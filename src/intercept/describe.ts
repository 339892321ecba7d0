// The state of interception in words, for `status`.

import type { Interception } from './interception.ts'

/** One line; undefined when no listener has a transparent mode. */
export function describeInterception({
  state,
  counters,
}: Pick<Interception, 'state' | 'counters'>): string | undefined {
  switch (state.kind) {
    case 'off':
      return undefined
    case 'absent':
      return 'no rules: nothing is redirected here; namegate intercept up'
    case 'in-force':
      return ['in force', ...repairsText(counters.repairs), ...state.notes].join('; ')
    case 'other':
      return `rules of another configuration: ${state.about}; namegate intercept up`
    case 'failed':
      return `not in force: ${state.reason}`
  }
}

function repairsText(repairs: number): readonly string[] {
  return repairs === 0 ? [] : [`put back ${repairs === 1 ? 'once' : `${repairs} times`}`]
}
