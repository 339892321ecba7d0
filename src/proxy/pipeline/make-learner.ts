// What answers teach, as the config says: durations become whole seconds here, the least rounded up and the most down.

import type { Config } from '../../config/config.ts'
import type { CoreState } from '../../enforcement/core-state.ts'
import type { PolicyControl } from '../../enforcement/policy-control.ts'
import { AnswerSettings } from './answer-settings.ts'
import { Learner } from './learner.ts'

const SECOND_MS = 1000

export interface MakeLearnerOptions {
  readonly config: Pick<Config, 'dns'>
  readonly core: CoreState
  readonly policies: PolicyControl
}

export function makeLearner({ config: { dns }, core, policies }: MakeLearnerOptions): Learner {
  const { names, ipcache, committer, guard, selectorLabels } = core
  return new Learner({
    ...{ names, ipcache, committer, guard, selectorLabels },
    maxTtl: Math.floor(dns.maxTtlMs / SECOND_MS),
    settings: new AnswerSettings({
      policies,
      defaults: {
        minTtl: Math.ceil(dns.minTtlMs / SECOND_MS),
        grace: Math.ceil(dns.graceAfterTtlMs / SECOND_MS),
        cnameMatch: dns.cnameMatch,
        svcb: dns.svcb,
      },
    }),
  })
}
