// One suite over every datapath adapter: what each must do with commits and with packets.

import { contractOfAdoption } from './adoption.ts'
import { contractOfAuditedRules } from './audited.ts'
import type { BenchMaker } from './bench.ts'
import { contractOfCommits } from './commits.ts'
import { contractOfConnections } from './connections.ts'
import { contractOfExceptions } from './exceptions.ts'
import { contractOfInterception } from './interception.ts'
import { contractOfPackets } from './packets.ts'
import { contractOfRandomPolicies } from './random.ts'
import { contractOfScopes } from './scopes.ts'
import { contractOfVerdicts } from './verdicts.ts'

export function datapathContract(maker: BenchMaker): void {
  contractOfCommits(maker)
  contractOfVerdicts(maker)
  contractOfAuditedRules(maker)
  contractOfExceptions(maker)
  contractOfConnections(maker)
  contractOfInterception(maker)
  contractOfAdoption(maker)
  contractOfPackets(maker)
  contractOfScopes(maker)
  contractOfRandomPolicies(maker)
}
