// This file moves between layouts of the maps. Each layout has its own pin directory. A map that is equal in an older layout is
// pinned in both directories, so the older and the newer version use the same map and find everything in force. Links of cgroup
// programs are changed in place. A map that differs begins empty, and its pin in the older directory is removed. So the older
// version does not find stale content in it.

import { existsSync, linkSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { layoutDirectory, linkDirectory, LINKS, pinDirectory } from './bpffs.ts'

/**
 * Older layouts from which this layout can continue, with the maps that are equal. Layout 2 had other events, and its one table
 * of new connections had no shares. Layout 3 had no map of whole addresses: they were in ng_ipcache.
 */
export const ALIKE: Readonly<Record<number, readonly string[]>> = {
  3: [
    'ng_mode',
    'ng_config',
    'ng_ipcache',
    'ng_endpoints',
    'ng_source',
    'ng_policy',
    'ng_conn',
    'ng_conn_new',
    'ng_flow_slot',
    'ng_flow_turn',
    'ng_conn_count',
    'ng_listeners',
    'ng_dns_source',
    'ng_gate',
    'ng_adopting',
    'ng_adopted',
    'ng_intercepted',
    'ng_events',
    'ng_stats',
    'ng_rate',
  ],
  2: [
    'ng_mode',
    'ng_ipcache',
    'ng_endpoints',
    'ng_source',
    'ng_policy',
    'ng_conn',
    'ng_conn_count',
    'ng_listeners',
    'ng_dns_source',
    'ng_gate',
    'ng_adopting',
    'ng_adopted',
    'ng_intercepted',
    'ng_rate',
  ],
}

/**
 * Pins in this layout's directory the equal maps of the newest older layout. Call it before maps are made. If this layout has been used
 * before, the equal maps are pinned already. If the older version has run since, maps that differ begin empty: their content is stale.
 */
export function inheritLayout(pinPath: string, alike = ALIKE): void {
  const own = pinDirectory(pinPath)
  const older = Object.keys(alike)
    .map(Number)
    .toSorted((a, b) => b - a)
    .find((layout) => existsSync(layoutDirectory(pinPath, layout)))
  if (older === undefined) return
  const from = layoutDirectory(pinPath, older)
  const isEqual = (name: string): boolean => alike[older]?.includes(name) === true
  const equal = pinsIn(from).filter(isEqual)
  // A change to this layout removes these pins, and the older version makes them again when it runs.
  const differing = pinsIn(from).filter((name) => !isEqual(name))
  const used = pinsIn(own)
  if (used.length > 0 && differing.length === 0) return
  for (const name of used) if (!isEqual(name)) rmSync(join(own, name))
  for (const name of equal) {
    if (!used.includes(name)) linkSync(join(from, name), join(own, name))
  }
  for (const name of differing) rmSync(join(from, name))
  if (used.length > 0) return
  for (const name of namesIn(join(from, LINKS))) {
    linkSync(join(from, LINKS, name), join(linkDirectory(pinPath), name))
  }
}

/** Pin directories of all layouts. */
export function layoutsIn(pinPath: string): readonly string[] {
  return namesIn(pinPath)
    .filter((name) => /^v\d+$/.test(name))
    .map((name) => join(pinPath, name))
}

/** The names of the pinned maps and programs in a directory. */
function pinsIn(folder: string): readonly string[] {
  return namesIn(folder).filter((name) => name !== LINKS)
}

function namesIn(folder: string): readonly string[] {
  return existsSync(folder) ? readdirSync(folder) : []
}
