// The state of interception in words, for `status`.

import type { InterceptionState } from './interception.ts'

/** One line; undefined when no listener has a transparent mode. */
export function describeInterception(state: InterceptionState): string | undefined {
  switch (state.kind) {
    case 'off':
      return undefined
    case 'absent':
      return 'no rules: nothing is redirected here; namegate intercept up'
    case 'in-force':
      return ['in force', ...state.notes].join('; ')
    case 'other':
      return `rules of another configuration: ${state.about}; namegate intercept up`
    case 'failed':
      return `failed: ${state.reason}`
  }
}
