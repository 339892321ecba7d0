// Checks the bounds of all sources together. A configuration that exceeds a bound has faults. This file also measures the room for
// resources of the API. The count of an unchanged policy is remembered.

import type { Config } from '../config/config.ts'
import {
  boundFaults,
  BoundsMemo,
  configuredPrefixesMax,
  countPrefixes,
} from '../enforcement/config-bounds.ts'
import type { Fault } from '../core/errors.ts'
import type { IdentityLabels } from '../policy/identity-labels.ts'

type Configured = Parameters<typeof boundFaults>[0]

/** The log message for such a fault while a daemon runs. */
export const PAST_BOUND =
  'the configuration passes a bound: what was in force before stays, and the next start is refused until it fits'

export class SourceBounds {
  readonly #config: Config
  readonly #identityLabels: IdentityLabels
  readonly #memo = new BoundsMemo()

  constructor(config: Config, identityLabels: IdentityLabels) {
    this.#config = config
    this.#identityLabels = identityLabels
  }

  /** Returns a fault for everything that exceeds a bound. Empty when the configuration can be put in force. */
  faults(configured: Configured): readonly Fault[] {
    const { limits, defaultEgress } = this.#config
    const bounds = {
      selectors: limits.selectors,
      endpoints: limits.endpoints,
      resources: limits.resources,
      policyEntries: limits['policy-entries'],
      prefixes: configuredPrefixesMax(limits),
    }
    return boundFaults(configured, bounds, { defaultEgress }, this.#identityLabels, this.#memo)
  }

  /** How many addresses can be added to all configured addresses. */
  addressRoom(configured: Configured): number {
    return configuredPrefixesMax(this.#config.limits) - countPrefixes(configured, this.#memo)
  }
}
