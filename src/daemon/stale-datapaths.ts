// Finds and removes a stale datapath: one of another kind, or with other pins, that still enforces. No daemon would report new
// names to it, so it would drop what policy allows: no daemon starts beside it, and `namegate datapath detach` removes it. The
// note of the pins names the last pins of this config file. The pin path of the config, the usual pin path and the table of
// this network namespace are stale when no daemon holds their lock.

import { existsSync } from 'node:fs'
import type { Config } from '../config/config.ts'
import { DEFAULT_PIN_PATH } from '../core/pin-path.ts'
import { UnavailableError } from '../core/errors.ts'
import { pinDirectory } from '../datapath/ebpf/maps/bpffs.ts'
import { detachAll } from '../datapath/ebpf/break-glass.ts'
import { hasTable, removeTable } from '../datapath/nftables/break-glass.ts'
import { takeLock } from '../native/lock.ts'
import { isBuilt, loadBpf, loadNetlink, loadPosix } from '../native/native.ts'
import { hasPins, notedPinPath } from './noted-pins.ts'
import { pinLockFile, tableLockFile } from '../state/lock.ts'

export type StaleDatapath =
  { readonly kind: 'ebpf'; readonly pinPath: string } | { readonly kind: 'nftables' }

/** `takesOver`: the daemon that has the lock of the table is the one before. */
export function staleDatapaths(
  { file, datapath }: Pick<Config, 'file' | 'datapath'>,
  takesOver = false,
): readonly StaleDatapath[] {
  const left: StaleDatapath[] = []
  const { kind, pinPath: own = DEFAULT_PIN_PATH } = datapath
  const noted = notedPinPath(file)
  if (noted !== undefined && (kind !== 'ebpf' || noted !== own)) {
    left.push({ kind: 'ebpf', pinPath: noted })
  }
  for (const pinPath of new Set([own, DEFAULT_PIN_PATH])) {
    const isOurs = kind === 'ebpf' && pinPath === own
    if (isOurs || pinPath === noted || !hasPins(pinPath)) continue
    if (isFree(pinLockFile(pinPath))) left.push({ kind: 'ebpf', pinPath })
  }
  if (kind !== 'nftables' && isTableThere()) {
    if (takesOver || isFree(tableLockFile())) left.push({ kind: 'nftables' })
  }
  return left
}

/** Throws UnavailableError with the way out when something is left; `file`: the config that `detach` is to be given. */
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

/** What is there to take away: that of the configured kind, and what another one left. */
export function enforcing(config: Pick<Config, 'file' | 'datapath'>): readonly StaleDatapath[] {
  const { datapath } = config
  const left = staleDatapaths(config)
  if (datapath.kind === 'nftables') return isTableThere() ? [{ kind: 'nftables' }, ...left] : left
  const hasOwn = datapath.kind === 'ebpf' && existsSync(pinDirectory(datapath.pinPath))
  return hasOwn ? [datapath, ...left] : left
}

/** Takes one away that is there, if its daemon did not; what it was, in words. */
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
    // Without the privilege to look there is none to have left one.
    return false
  }
}

/** Whether no daemon holds a lock. */
function isFree(lock: string): boolean {
  if (!existsSync(lock)) return true
  try {
    const result = takeLock(loadPosix(), lock, process.pid)
    if (result.kind === 'held') result.release()
    return result.kind === 'held'
  } catch {
    // It is not ours to say.
    return false
  }
}
