// This file loads programs of the kernel object. The programs for interfaces are loaded first, which pins the maps. Programs of
// another section join them later and use the same maps. If this machine cannot load programs, the file reports why in one line.

import { existsSync, readFileSync } from 'node:fs'
import { UnavailableError } from '../../core/errors.ts'
import { nativeFile, whyMissing } from '../../native/native-files.ts'
import { errnoName, type Bpf, type LoadedObject, type Posix } from '../../native/native.ts'
import { ensurePinDirectory, pinDirectory } from './maps/bpffs.ts'
import { inheritLayout } from './maps/layouts.ts'

/** Numbers of entries by map name, where they differ from the number in the object. */
export type MapSizes = Readonly<Record<string, number>>

/** Beginnings of the names of sections. */
const INTERFACE_SECTION = 'tc'
const CGROUP_SECTION = 'cgroup_skb/'

const EPERM = -1
const EAGAIN = -11
const EACCES = -13
const EMEDIUMTYPE = -124
const LOAD_TRIES = 8

/** Reads the kernel object. An upgrade can replace the file, so all programs of a process come from what it read once. */
export function readKernelObject(): Uint8Array {
  const file = nativeFile('namegate.bpf.o')
  if (existsSync(file)) return readFileSync(file)
  throw new UnavailableError(
    `Cannot load the eBPF datapath: namegate.bpf.o is missing: ${whyMissing('apt-get install clang libbpf-dev')}`,
  )
}

/** Loads the programs for interfaces and pins the maps. Throws UnavailableError with the remedy. */
export function loadProgram(
  bpf: Bpf,
  posix: Posix,
  pinPath: string,
  sizes: MapSizes,
  file: Uint8Array = readKernelObject(),
): LoadedObject {
  ensurePinDirectory(posix, pinPath)
  inheritLayout(pinPath)
  bpf.raiseMemlock()
  const loaded = untilNoSignal(() =>
    bpf.load(file, INTERFACE_SECTION, pinDirectory(pinPath), sizes),
  )
  if (typeof loaded !== 'number') return loaded
  throw new UnavailableError(`Cannot load the eBPF datapath: ${explain(bpf, loaded, pinPath)}`)
}

/** Loads the programs for cgroups, which use the maps of `object`. Returns the reason if the kernel refuses them. */
export function loadCgroupPrograms(
  bpf: Bpf,
  pinPath: string,
  file: Uint8Array,
  object: LoadedObject,
): LoadedObject | string {
  const loaded = untilNoSignal(() =>
    bpf.load(file, CGROUP_SECTION, pinDirectory(pinPath), object.handle),
  )
  if (typeof loaded !== 'number') return loaded
  return `the programs for cgroups cannot be loaded: ${explain(bpf, loaded, pinPath)}`
}

/** A signal makes the verifier stop with EAGAIN, so loading is tried again. */
function untilNoSignal(load: () => LoadedObject | number): LoadedObject | number {
  let loaded = load()
  for (let tried = 1; loaded === EAGAIN && tried < LOAD_TRIES; tried++) loaded = load()
  return loaded
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

export function programOf(object: LoadedObject, name: string): number {
  const fd = object.programs[name]
  if (fd === undefined) throw new Error(`Cannot find program ${name} in namegate.bpf.o`)
  return fd
}
