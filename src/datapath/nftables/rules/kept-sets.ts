// Which sets outlive a start: those that are known and written by elements, and those whose elements go by themselves. What is
// in none of the two lists is static, or learned addresses, which stand in addresses.ts.

import { shapeOf } from './layout.ts'

/** Sets whose elements are kept through a start as they are. */
export const KEPT: readonly string[] = [
  'written',
  'mode',
  'hooks_in',
  'hooks_out',
  'fences_in',
  'fences_out',
  'endpoints',
  'audited',
  'unenforced',
  'scoped',
  'sources4',
  'sources6',
  'own4',
  'own6',
  'listeners4',
  'listeners6',
  'listeners_any',
  'intercepted',
  'intercepted_mac',
  'policies',
  'ports',
  'entries',
  'ranges4',
  'ranges6',
  'prefixes4',
  'prefixes6',
].map((name) => shapeOf(name).name)

/** Sets whose elements go by themselves. */
export const TIMED: readonly string[] = [
  'quiet',
  'neighbours',
  'adopted4',
  'adopted6',
  'learned4',
  'learned6',
  'learning',
  'passing',
].map((name) => shapeOf(name).name)

export function isTimed(name: string): boolean {
  return TIMED.includes(name)
}
