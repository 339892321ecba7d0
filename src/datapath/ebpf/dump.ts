// Everything in force, read back from the kernel's maps.

import type { DatapathDump, DatapathEndpoint, PolicyEntry } from '../datapath.ts'
import { PrefixBatch } from '../prefix-batch.ts'
import {
  decodeEndpoint,
  decodeHookKey,
  decodeMode,
  decodePolicy,
  encodeNumber,
  formatHookKey,
} from './layout.ts'
import type { KernelMaps } from './maps.ts'
import { Sources } from './sources.ts'

export function readDump(maps: KernelMaps): DatapathDump {
  const prefixes = new PrefixBatch()
  maps.ng_ipcache.forEach((keys, key, values, value) => prefixes.addRaw(keys, key, values, value))
  const policies: PolicyEntry[] = []
  maps.ng_policy.forEach((keys, key, values, value) => {
    policies.push(decodePolicy(keys, key, values, value))
  })
  const sources = new Sources(maps.ng_source).read()
  const endpoints: DatapathEndpoint[] = []
  maps.ng_endpoints.forEach((keys, key, values, value) => {
    const { id, generation, enforcing, audit, scoped, fenced } = decodeEndpoint(values, value)
    if (fenced) return
    const hookKey = formatHookKey(decodeHookKey(keys, key))
    endpoints.push({
      id,
      generation,
      enforcing,
      audit,
      scoped,
      sources: sources.get(id) ?? [],
      hookKey,
    })
  })
  const mode = decodeMode(maps.ng_mode.get(encodeNumber(0)) ?? encodeNumber(0))
  return { mode, prefixes, policies, endpoints }
}
