// Decides when the daemon is ready: an upstream has answered, and nothing else prevents it from serving. A reason has its remedy, if any.

import type { Datapath } from '../datapath/datapath.ts'
import type { CoreState } from '../enforcement/core-state.ts'
import type { PolicyControl } from '../enforcement/policy-control.ts'
import type { Interception } from '../intercept/interception.ts'
import type { Config } from '../config/config.ts'
import type { Clock } from '../core/clock.ts'
import type { DnsProxy } from '../proxy/dns-proxy.ts'
import { Readiness } from '../proxy/upstream/probes.ts'
import type { ConfigSources } from '../sources/config-sources.ts'
import { describeInterception } from '../intercept/interception.ts'
import { PAST_BOUND } from '../sources/source-bounds.ts'

export interface ReadinessSources {
  readonly core: CoreState
  readonly policies: PolicyControl
  readonly sources: ConfigSources
  readonly readiness: Readiness
  readonly interception: Interception
  readonly datapath: Datapath
}

export function makeReadiness(config: Config, clock: Clock, { upstream }: DnsProxy): Readiness {
  const { pool, probes } = upstream
  return new Readiness({ clock, pool, probes, timeoutMs: config.upstreams.timeoutMs })
}

/** Why the daemon is not ready, without reasons of its listeners and of the cluster. Empty when there is no such reason. */
export function reasonsNotReady(daemon: ReadinessSources): readonly string[] {
  const reasons: string[] = []
  const { refused, watch } = daemon.core.committer
  if (!daemon.policies.loaded) reasons.push('policy is not loaded')
  if (daemon.sources.isRefused) reasons.push(PAST_BOUND)
  if (!daemon.readiness.anyAnswered) reasons.push('no upstream has answered yet')
  const { interception } = daemon
  const { kind } = interception.state
  if (kind === 'failed' || kind === 'other') {
    reasons.push(`interception: ${describeInterception(interception)}`)
  }
  const { repair } = daemon.datapath
  const gone = repair.kind === 'by-daemon' ? repair.missingPins() : []
  if (gone.length > 0) {
    const what = `pinned maps are gone (${gone.join(', ')})`
    reasons.push(`${what}: enforcement goes on until the daemon ends: restart it`)
  }
  if (refused > 0) reasons.push(`the datapath refuses ${refused} entries`)
  if (watch.isStalled) {
    reasons.push('the datapath is stalled: a commit takes longer than a second')
  }
  return reasons
}
