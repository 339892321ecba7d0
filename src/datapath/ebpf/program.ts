// This file loads the kernel object and pins its maps, or reports in one line why this machine cannot load it.

import { existsSync } from 'node:fs'
import { UnavailableError } from '../../core/errors.ts'
import { nativeFile, whyMissing } from '../../native/native-files.ts'
import { errnoName, type Bpf, type LoadedObject, type Posix } from '../../native/native.ts'
import { ensurePinDirectory, pinDirectory } from './maps/bpffs.ts'
import { inheritLayout } from './maps/layouts.ts'

/** Numbers of entries by map name, where they differ from the number in the object. */
export type MapSizes = Readonly<Record<string, number>>

const EPERM = -1
const EAGAIN = -11
const EACCES = -13
const EMEDIUMTYPE = -124
const LOAD_TRIES = 8

export function loadProgram(
  bpf: Bpf,
  posix: Posix,
  pinPath: string,
  sizes: MapSizes,
): LoadedObject {
  const file = nativeFile('namegate.bpf.o')
  if (!existsSync(file)) {
    throw new UnavailableError(
      `Cannot load the eBPF datapath: namegate.bpf.o is missing: ${whyMissing('apt-get install clang libbpf-dev')}`,
    )
  }
  ensurePinDirectory(posix, pinPath)
  inheritLayout(pinPath)
  bpf.raiseMemlock()
  // A signal makes the verifier stop with EAGAIN, so loading is tried again.
  let loaded = bpf.load(file, pinDirectory(pinPath), sizes)
  for (let tried = 1; loaded === EAGAIN && tried < LOAD_TRIES; tried++) {
    loaded = bpf.load(file, pinDirectory(pinPath), sizes)
  }
  if (typeof loaded !== 'number') return loaded
  throw new UnavailableError(`Cannot load the eBPF datapath: ${explain(bpf, loaded, pinPath)}`)
}

function explain(bpf: Bpf, errno: number, pinPath: string): string {
  switch (errno) {
    case EPERM:
    case EACCES:
      return 'no privilege: run as root, or with CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON'
    case EMEDIUMTYPE:
      return `${bpf.lastLog().trim()} has another shape: run namegate datapath detach, or use another pin-path than ${pinPath}`
    default: {
      const said = bpf.lastLog().trim().split('\n').at(-1) ?? ''
      return `${errnoName(errno)}: ${said}: it needs kernel 5.8 or newer with BPF and clsact; use datapath.kind memory or nftables`
    }
  }
}
