// This file handles elements that another process added, removed or changed. It notes each of them in the table that knows what
// the set should have, and the next batch writes the element again. It ignores the set `mode`, because break-glass mode sets it
// (break-glass.ts).

import { formatAddress } from '../../../core/ip.ts'
import type { RepairedEntry } from '../../repair.ts'
import { wordAt } from '../netlink/keys.ts'
import { SETS, TIMED } from '../rules/layout.ts'
import type { Element } from '../tables/mirror.ts'
import type { Table } from '../tables/table.ts'

const FAMILY = { exact4: 4, exact6: 6 } as const
const MODE = 'mode'
const NOTHING = new Uint8Array(16)
/** Sets whose elements change. structure.ts compares the other sets. */
const KNOWN: ReadonlySet<string> = new Set(
  SETS.filter(({ data }) => data !== 'verdict').map(({ name }) => name),
)

/** Called when a set has a wrong element. `describe` reads the kernel's element at once. */
export type OnFound = (map: string, describe: () => RepairedEntry) => void

/** Notes that another process added this element (`isThere`) or removed it. */
export function suspect(
  table: Table,
  name: string,
  element: Element,
  isThere: boolean,
  onFound: OnFound,
): void {
  if (name === MODE || !KNOWN.has(name)) return
  if (!isSuspect(table, name, element, isThere)) return
  onFound(name, () => {
    const wanted = wantedOf(table, name, element)
    return {
      map: name,
      key: keyText(name, element.key),
      want: wanted === undefined ? null : valueText(name, wanted),
      have: isThere ? valueText(name, element) : null,
    }
  })
}

function isSuspect(table: Table, name: string, element: Element, isThere: boolean): boolean {
  const { mirror, prefixes, timed } = table
  if (isExact(name)) {
    const held = isThere ? (element.data ?? NOTHING) : undefined
    return prefixes.addresses.suspect(FAMILY[name], element.key, held)
  }
  return (TIMED.includes(name) ? timed : mirror).suspect(name, element, isThere)
}

function wantedOf(table: Table, name: string, element: Element): Element | undefined {
  const { key } = element
  if (TIMED.includes(name)) return table.timed.wanted(name, key)
  if (!isExact(name)) return table.mirror.like(name, element)
  const data = table.prefixes.addresses.dataOf(FAMILY[name], key)
  return data === undefined ? undefined : { key, data }
}

export function isExact(name: string): name is keyof typeof FAMILY {
  return name in FAMILY
}

function keyText(name: string, key: Uint8Array): string {
  if (!isExact(name)) return Buffer.from(key).toString('hex')
  const octets = new Uint8Array(16)
  octets.set(key.subarray(4))
  const address = formatAddress(FAMILY[name], octets, 0)
  const scope = wordAt(key, 0)
  return scope === 0 ? address : `${address} of endpoint ${scope}`
}

function valueText(name: string, { data, timeoutMs }: Element): string {
  if (data === undefined || data.length === 0) {
    return timeoutMs === undefined ? 'there' : `there for ${timeoutMs} ms`
  }
  if (!isExact(name)) return Buffer.from(data).toString('hex')
  return `identity ${wordAt(data, 4)}, class ${wordAt(data, 12)}`
}
