// The pin path of the last eBPF daemon of a config file, whatever the file says now. Loads little, because break glass needs it.

import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { pinDirectory } from '../datapath/ebpf/maps/bpffs.ts'
import { readNotedPins } from '../state/pin-note.ts'

/** Undefined when none was noted, or they are gone, or have another layout, which the next eBPF daemon looks after. */
export function notedPinPath(file: string): string | undefined {
  const folder = readNotedPins(file)
  const pinPath = folder === undefined ? undefined : dirname(folder)
  if (pinPath === undefined || pinDirectory(pinPath) !== folder) return undefined
  return hasPins(pinPath) ? pinPath : undefined
}

/** Whether endpoints are enforced by what is pinned there. */
export function hasPins(pinPath: string): boolean {
  return existsSync(join(pinDirectory(pinPath), 'ng_endpoints'))
}
