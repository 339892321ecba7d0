// Traffic of namegate itself where it shares the network namespace with whom it fences: to its upstreams only, and only with
// the mark and the user that are its own, because CAP_NET_RAW alone suffices to set a mark.

import { TCP, UDP } from '../../../core/protocol.ts'
import type { OwnTraffic } from '../../abilities.ts'
import { pack } from '../netlink/keys.ts'
import { shapeOf } from '../rules/layout.ts'
import type { Element } from './mirror.ts'

export function ownElements(
  own: readonly OwnTraffic[],
): readonly (readonly [name: string, elements: readonly Element[]])[] {
  return ([4, 6] as const).map((family) => {
    const name = `own${family}`
    const elements = own
      .filter((each) => each.family === family)
      .flatMap(({ mark, uid, octets, port }) =>
        [TCP, UDP].map((protocol) => ({
          key: pack(shapeOf(name).key, [mark, uid, protocol, octets, port]),
        })),
      )
    return [name, elements] as const
  })
}
