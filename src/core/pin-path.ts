// Has the default paths of pins in a bpffs, and finds names that a bpffs refuses.

/** The usual mount point of bpffs. */
export const USUAL_BPFFS = '/sys/fs/bpf'

/** The default of `datapath.ebpf.pin-path`. */
export const DEFAULT_PIN_PATH = '/sys/fs/bpf/namegate'

/** The beginning of the pin paths of `namegate up`. The name of the workload follows. */
export const UP_PIN_PATH = '/sys/fs/bpf/namegate-up-'

/** Returns the first name with a dot in a path inside a bpffs, because bpffs refuses such names. Undefined when there is none. */
export function dottedName(path: string): string | undefined {
  return path.split('/').find((name) => name.includes('.'))
}
