// The maps of the loaded object by name.

import type { Bpf } from '../../../native/native.ts'
import { KernelMap } from './kernel-map.ts'
import type { MapName } from './layout.ts'

export type KernelMaps = Readonly<Record<MapName, KernelMap>>

export function openMaps(bpf: Bpf, fds: Readonly<Record<string, number>>): KernelMaps {
  const open = (name: MapName): KernelMap => {
    const fd = fds[name]
    if (fd === undefined) throw new Error(`Cannot find map ${name} in namegate.bpf.o`)
    return new KernelMap(bpf, name, fd)
  }
  return {
    ng_mode: open('ng_mode'),
    ng_config: open('ng_config'),
    ng_ipcache: open('ng_ipcache'),
    ng_endpoints: open('ng_endpoints'),
    ng_source: open('ng_source'),
    ng_policy: open('ng_policy'),
    ng_conn: open('ng_conn'),
    ng_conn_new: open('ng_conn_new'),
    ng_flow_slot: open('ng_flow_slot'),
    ng_flow_turn: open('ng_flow_turn'),
    ng_conn_count: open('ng_conn_count'),
    ng_listeners: open('ng_listeners'),
    ng_dns_source: open('ng_dns_source'),
    ng_gate: open('ng_gate'),
    ng_adopting: open('ng_adopting'),
    ng_adopted: open('ng_adopted'),
    ng_intercepted: open('ng_intercepted'),
    ng_stats: open('ng_stats'),
  }
}
