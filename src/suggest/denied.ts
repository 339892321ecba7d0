// Finds the flows that policy denied and that are neither allowed nor suggested meanwhile, for a note about them.

import type { Needs, DeniedFlow } from './needs.ts'
import type { SuggestOptions } from './suggest.ts'

/** Returns what the endpoints were denied, without what policy allows now and what later flows show as asked or reached. */
export function stillDenied(
  needs: Needs,
  { judgeAsked, judgeReached }: Pick<SuggestOptions, 'judgeAsked' | 'judgeReached'>,
): readonly DeniedFlow[] {
  const { asked, labels } = needs
  return [...needs.denied.values()].filter(({ name, place, last }) => {
    if (name !== undefined) {
      return (asked.get(name)?.last ?? '') <= last && judgeAsked(labels, name) !== 'allowed'
    }
    if (place === undefined) return true
    const later = [...needs.reached].some(
      ({ address, port, protocol, evidence }) =>
        address === place.address &&
        port === place.port &&
        protocol === place.protocol &&
        evidence.last > last,
    )
    return !later && judgeReached(labels, place) !== 'allowed'
  })
}
