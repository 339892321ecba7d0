// Finds and removes stale datapaths. A datapath is stale if it still enforces but has another kind or other pins than the config. A stale
// datapath learns no new names, so it would drop what policy allows. Therefore no daemon starts beside it. `namegate datapath detach`
// removes it. The pins that the note of this config file names are stale if the config no longer uses them. Three further places are looked
// at: the pin path of the config, the usual pin path, and the table of this network namespace. They are stale if the config does not use
// them and no daemon holds their lock.

import { existsSync } from 'node:fs'
import type { Config } from '../config/config.ts'
import { DEFAULT_PIN_PATH } from '../core/pin-path.ts'
import { UnavailableError } from '../core/errors.ts'
import { pinDirectory } from '../datapath/ebpf/maps/bpffs.ts'
import { detachAll } from '../datapath/ebpf/break-glass.ts'
import { hasTable, removeTable } from '../datapath/nftables/break-glass.ts'
import { isBuilt, loadBpf, loadNetlink } from '../native/native.ts'
import { hasPins, notedPinPath } from './noted-pins.ts'
import { isLockFree, pinLockFile, tableLockFile } from '../state/lock.ts'

export type StaleDatapath =
  | { readonly kind: 'ebpf'; readonly pinPath: string }
  | { readonly kind: 'nftables' }

/** Lists stale datapaths. `takesOver`: the predecessor holds the lock of the table, so the lock does not protect the table. */
export function staleDatapaths(
  { file, datapath }: Pick<Config, 'file' | 'datapath'>,
  takesOver = false,
): readonly StaleDatapath[] {
  const left: StaleDatapath[] = []
  const { kind, pinPath: own } = datapath
  const noted = notedPinPath(file)
  if (noted !== undefined && (kind !== 'ebpf' || noted !== own)) {
    left.push({ kind: 'ebpf', pinPath: noted })
  }
  for (const pinPath of new Set([own, DEFAULT_PIN_PATH])) {
    const isOurs = kind === 'ebpf' && pinPath === own
    if (isOurs || pinPath === noted || !hasPins(pinPath)) continue
    if (isLockFree(pinLockFile(pinPath))) left.push({ kind: 'ebpf', pinPath })
  }
  if (kind !== 'nftables' && isTableThere()) {
    if (takesOver || isLockFree(tableLockFile())) left.push({ kind: 'nftables' })
  }
  return left
}

/** Throws UnavailableError with the remedy when there is a stale datapath. The remedy names the config file `file` for `detach`. */
export function refuseStale(
  config: Pick<Config, 'file' | 'datapath'>,
  takesOver: boolean,
  file = config.file,
): void {
  const [left] = staleDatapaths(config, takesOver)
  if (left === undefined) return
  const { datapath } = config
  const where = left.kind === 'ebpf' ? ` in ${left.pinPath}` : ' in this network namespace'
  const isMoved = datapath.kind === 'ebpf' && left.kind === 'ebpf'
  const other = isMoved ? `pins in ${datapath.pinPath}` : `datapath.kind ${datapath.kind}`
  const wanted = `Cannot start with ${other}`
  const remedy = `take it away with namegate datapath detach --config ${file}`
  throw new UnavailableError(`${wanted}: what ${left.kind} left${where} still enforces: ${remedy}`)
}

/** Lists the datapaths that `detach` removes: the datapath of the configured kind, and stale datapaths. */
export function enforcing(config: Pick<Config, 'file' | 'datapath'>): readonly StaleDatapath[] {
  const { datapath } = config
  const left = staleDatapaths(config)
  if (datapath.kind === 'nftables') return isTableThere() ? [{ kind: 'nftables' }, ...left] : left
  const hasOwn = datapath.kind === 'ebpf' && existsSync(pinDirectory(datapath.pinPath))
  return hasOwn ? [datapath, ...left] : left
}

/** Removes a datapath that may be gone already. Returns the datapath's name for people. */
export function takeAway(left: StaleDatapath): string {
  if (left.kind === 'nftables') {
    removeTable(loadNetlink())
    return 'the nftables table'
  }
  detachAll(loadBpf(), left.pinPath)
  return `eBPF programs and the pins in ${left.pinPath}`
}

function isTableThere(): boolean {
  try {
    return isBuilt('nftables') && hasTable(loadNetlink())
  } catch {
    // A user who has no privilege to look had no privilege to make a table.
    return false
  }
}
