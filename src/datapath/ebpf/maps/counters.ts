// Counters of the kernel side (ng_stats, one number a CPU) and of our own writes.

import type { Bpf } from '../../../native/native.ts'
import type { DatapathCounters } from '../../abilities.ts'
import { encodeNumber, readLong, STAT_NAMES } from './layout.ts'
import type { KernelMaps } from './maps.ts'

export function readCounters(bpf: Bpf, maps: KernelMaps): DatapathCounters {
  const counters: Record<string, number> = {}
  const cpus = bpf.possibleCpus()
  const values = new Uint8Array(8 * cpus)
  STAT_NAMES.forEach((name, index) => {
    let sum = 0
    if (bpf.lookup(maps.ng_stats.fd, encodeNumber(index), values) === 0) {
      for (let cpu = 0; cpu < cpus; cpu++) sum += readLong(values, cpu * 8)
    }
    counters[name] = sum
  })
  for (const map of Object.values(maps)) {
    counters[`map_writes_${map.name.slice('ng_'.length)}`] = map.writes
  }
  return counters
}
