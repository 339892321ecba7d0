// One suite over every datapath adapter: what any of them must do with commits and with packets.

import type { BenchMaker } from './bench.ts'
import { contractOfCommits } from './commits.ts'
import { contractOfConnections } from './connections.ts'
import { contractOfPackets } from './packets.ts'
import { contractOfVerdicts } from './verdicts.ts'

export function datapathContract(maker: BenchMaker): void {
  contractOfCommits(maker)
  contractOfVerdicts(maker)
  contractOfConnections(maker)
  contractOfPackets(maker)
}
