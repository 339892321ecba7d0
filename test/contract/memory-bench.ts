// The packet model, which is the memory datapath with a judge, for the contract suite.

import type { Clock } from '../../src/core/clock.ts'
import { systemClock } from '../../src/core/clock.ts'
import { PacketModel } from '../support/models/packet-model/packet-model.ts'
import type { Bench, BenchMaker, Sizes } from './bench.ts'

export interface MemoryBench extends Bench {
  readonly datapath: PacketModel
}

export function makeMemoryBench(sizes: Sizes = {}, clock: Clock = systemClock): MemoryBench {
  const datapath = new PacketModel({
    clock,
    prefixesMax: sizes.prefixes ?? 65_536,
    policyEntriesMax: sizes.policies ?? 65_536,
    connectionsPerEndpoint: sizes.connectionsPerEndpoint ?? 65_536,
    tcpIdleMs: sizes.tcpIdleMs ?? 6 * 3_600_000,
    udpIdleMs: sizes.udpIdleMs ?? 180_000,
    adoptedMax: sizes.adopted ?? 1024,
    ifIndex: (name) => Number(name.slice('lxc'.length)),
  })
  datapath.start()
  return {
    datapath,
    judge: (endpoint, direction, frame) => datapath.judge(endpoint, direction, frame),
    interfaceHook: (n) => ({ kind: 'interface', name: `lxc${n}`, side: 'ingress' }),
    ifindex: (n) => n,
    cgroupHook: () => ({ kind: 'cgroup', path: 'shop.slice' }),
    restart: () => {
      datapath.stop({ leaveEnforcing: true })
      datapath.start()
    },
    close: () => datapath.stop({ leaveEnforcing: false }),
  }
}

export const memoryMaker: BenchMaker = {
  name: 'memory',
  unavailable: undefined,
  make: (sizes) => makeMemoryBench(sizes),
}
