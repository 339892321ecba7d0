// Paths of pins in a bpffs: the defaults, and the names that a bpffs refuses.

/** The usual mount point of bpffs. */
export const USUAL_BPFFS = '/sys/fs/bpf'

/** The default of `datapath.ebpf.pin-path`. */
export const DEFAULT_PIN_PATH = '/sys/fs/bpf/namegate'

/** The first name with a dot in a path inside a bpffs, which refuses such names; undefined for none. */
export function dottedName(path: string): string | undefined {
  return path.split('/').find((name) => name.includes('.'))
}
