// This file reads and sets the mode and removes all enforcement, by the pins alone and without a daemon (break-glass mode). Each
// function makes a few system calls, so it also works while a machine is in trouble.

import { existsSync, readdirSync, rmSync, rmdirSync } from 'node:fs'
import { join } from 'node:path'
import { UnavailableError } from '../../core/errors.ts'
import { errnoName, type Bpf } from '../../native/native.ts'
import type { Mode } from '../entries.ts'
import { detach } from './hooks/attach.ts'
import { TcPrograms } from './hooks/tc-programs.ts'
import { linkDirectory, LINKS, pinDirectory } from './maps/bpffs.ts'
import { KernelMap } from './maps/kernel-map.ts'
import { layoutsIn } from './maps/layouts.ts'
import { decodeHookKey, decodeMode, encodeMode, encodeNumber, type MapName } from './maps/layout.ts'

const ENOENT = -2
/** Removed before the first program, so that a running daemon recognizes that enforcement is removed on purpose. */
const FIRST_TO_GO: MapName = 'ng_mode'

export function readPinnedMode(bpf: Bpf, pinPath: string): Mode {
  return withPin(bpf, pinPath, 'ng_mode', (map) =>
    decodeMode(map.get(encodeNumber(0)) ?? encodeNumber(0)),
  )
}

export function setPinnedMode(bpf: Bpf, pinPath: string, mode: Mode): void {
  const errno = withPin(bpf, pinPath, 'ng_mode', (map) =>
    map.set(encodeNumber(0), encodeMode(mode)),
  )
  if (errno !== 0) {
    throw new UnavailableError(`Cannot set mode ${mode}: ${errnoName(errno)}`)
  }
}

/** True while enforcement is being removed, and after. The daemon then repairs nothing. */
export function isBeingDetached(pinPath: string): boolean {
  return !existsSync(join(pinDirectory(pinPath), FIRST_TO_GO))
}

/**
 * Removes the programs of this pin path from every interface and cgroup, then removes the pins. Returns how many hooks had
 * programs. It is no error if nothing is there.
 */
export function detachAll(bpf: Bpf, pinPath: string): number {
  const links = linkDirectory(pinPath)
  const tc = new TcPrograms(bpf, pinPath, () => true)
  let hooks = 0
  rmSync(join(pinDirectory(pinPath), FIRST_TO_GO), { force: true })
  const fd = bpf.openPin(join(pinDirectory(pinPath), 'ng_endpoints'))
  if (fd < 0 && fd !== ENOENT) throw refused(pinPath, fd)
  if (fd >= 0) {
    new KernelMap(bpf, 'ng_endpoints', fd).forEach((keys, at) => {
      detach(tc, links, decodeHookKey(keys, at))
      hooks++
    })
    bpf.close(fd)
  }
  for (const layout of layoutsIn(pinPath)) {
    removePins(join(layout, LINKS))
    removePins(layout)
  }
  removeIfEmpty(pinPath)
  return hooks
}

function withPin<T>(bpf: Bpf, pinPath: string, name: MapName, use: (map: KernelMap) => T): T {
  const fd = bpf.openPin(join(pinDirectory(pinPath), name))
  if (fd < 0) throw refused(pinPath, fd)
  try {
    return use(new KernelMap(bpf, name, fd))
  } finally {
    bpf.close(fd)
  }
}

function refused(pinPath: string, errno: number): UnavailableError {
  const remedy =
    errno === ENOENT
      ? 'nothing is enforced there; start the daemon with datapath.kind ebpf, or give the right pin-path'
      : `${errnoName(errno)}: run as root`
  return new UnavailableError(`Cannot use the pins in ${pinPath}: ${remedy}`)
}

function removePins(directory: string): void {
  let names: readonly string[]
  try {
    names = readdirSync(directory)
  } catch {
    return
  }
  for (const name of names) rmSync(join(directory, name), { force: true, recursive: true })
  removeIfEmpty(directory)
}

function removeIfEmpty(directory: string): void {
  try {
    rmdirSync(directory)
  } catch {
    // The folder is absent, or has files of another program.
  }
}
