// Plans for tests, from configuration texts.

import { parseConfig } from '../../../src/config/load.ts'
import { makePlan, type InterceptPlan, type PlanOptions } from '../../../src/intercept/plan.ts'
import type { EndpointPlaces } from '../../../src/intercept/targets.ts'

export interface PlanText {
  /** Items of `listeners`. */
  readonly listeners: string
  /** More lines of the config. */
  readonly more?: string
  readonly uid?: number
  readonly hasIpv6?: boolean
  readonly servers?: PlanOptions['servers']
}

export const SERVERS: PlanOptions['servers'] = [
  { family: 4, address: '192.0.2.53', port: 53 },
  { family: 6, address: '2001:db8:53::53', port: 53 },
  { family: 4, address: '192.0.2.54', port: 5353 },
]

export function maybePlan(text: PlanText): InterceptPlan | undefined {
  const { listeners, more = '', uid = 999, hasIpv6 = true, servers = SERVERS } = text
  const config = parseConfig(`listeners: [${listeners}]\n${more}`, 'ng.yaml', () => false)
  return makePlan({ config, servers, uid, hasIpv6 })
}

export function mkPlan(text: PlanText): InterceptPlan {
  const plan = maybePlan(text)
  if (plan === undefined) throw new Error('nothing to intercept')
  return plan
}

/** Endpoints at these interfaces. */
export function at(...interfaces: readonly string[]): EndpointPlaces {
  return { interfaces, cgroups: [] }
}
