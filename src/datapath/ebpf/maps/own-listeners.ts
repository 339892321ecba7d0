// namegate's own listeners in the kernel's map: DNS to them needs no rule.

import { errnoName } from '../../../native/native.ts'
import type { ListenerEntry } from '../../datapath.ts'
import { keyOf, keyText, type KernelMap } from './kernel-map.ts'
import { encodeListener, encodeNumber } from './layout.ts'

/** Makes the listeners exactly these: additions first. */
export function writeListeners(map: KernelMap, listeners: readonly ListenerEntry[]): void {
  const stale = new Set(map.keyTexts())
  const one = encodeNumber(1)
  for (const listener of listeners) {
    const key = encodeListener(listener)
    stale.delete(keyText(key))
    const errno = map.set(key, one)
    if (errno !== 0) throw new Error(`Cannot set listener: ${errnoName(errno)}`)
  }
  for (const key of stale) map.delete(keyOf(key))
}
