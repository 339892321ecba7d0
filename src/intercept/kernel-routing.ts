// KernelRouting reads and changes the routing of TPROXY with ip(8). It finds which steps exist, which are missing, and which
// rules of other programs are in the way. routing.ts defines the steps. The caller holds the lock (state/lock.ts).

import { UnavailableError } from '../core/errors.ts'
import type { Family } from '../core/ip.ts'
import type { InterceptPlan } from './plan.ts'
import {
  foreignRoute,
  foundSteps,
  parseRules,
  PROTOCOL,
  ruleInTheWay,
  routingSteps,
  type RoutingStep,
} from './routing.ts'
import { mustRun, toolError, type RunTool } from './tools.ts'

const BOTH: readonly Family[] = [4, 6]

export class KernelRouting {
  readonly #run: RunTool

  constructor(run: RunTool) {
    this.#run = run
  }

  /** The steps of the plan that are missing, in the order in which they are made. */
  async missing(plan: InterceptPlan): Promise<readonly RoutingStep[]> {
    const found = await this.#foundAll()
    return routingSteps(plan).filter((step) => !has(found, step))
  }

  /** Makes the missing steps and returns them, and removes steps of another plan. Adds the reverse of each step to `undo`. */
  async make(
    plan: InterceptPlan,
    undo: (() => Promise<unknown>)[],
  ): Promise<readonly RoutingStep[]> {
    const wanted = routingSteps(plan)
    const found = await this.#foundAll()
    for (const step of found.filter((each) => !has(wanted, each)).toReversed()) {
      await mustRun(this.#run, 'ip', step.remove)
      undo.push(async () => await this.#run('ip', step.add))
    }
    const missing = wanted.filter((step) => !has(found, step))
    for (const step of missing) {
      await mustRun(this.#run, 'ip', step.add)
      undo.push(async () => await this.#run('ip', step.remove))
    }
    return missing
  }

  /** Removes all of namegate's routing, of any config. Returns true if there was any. */
  async remove(): Promise<boolean> {
    let removed = false
    for (const family of BOTH) {
      for (const step of (await this.#found(family)).toReversed()) {
        await mustRun(this.#run, 'ip', step.remove)
        removed = true
      }
    }
    return removed
  }

  /** Throws UnavailableError if a rule or route of another program is in the way. */
  async lookAround(plan: InterceptPlan): Promise<void> {
    if (plan.tproxy.length === 0) return
    for (const family of plan.families) {
      const reason = await this.#inTheWay(family, plan)
      if (reason !== undefined) throw inTheWay(reason)
    }
  }

  async #inTheWay(family: Family, plan: InterceptPlan): Promise<string | undefined> {
    const rules = parseRules(await mustRun(this.#run, 'ip', [`-${family}`, '-j', 'rule']))
    const reason = ruleInTheWay(rules, plan)
    if (reason !== undefined) return reason
    // ip(8) fails for a table that was never used.
    const table = ['route', 'show', 'table', String(plan.table)]
    const { code, stdout } = await this.#run('ip', [`-${family}`, '-j', ...table])
    const route = code === 0 ? foreignRoute(stdout) : undefined
    return route === undefined
      ? undefined
      : `routing table ${plan.table} has a route of another program (${route}): give intercept.table a free number`
  }

  async #foundAll(): Promise<readonly RoutingStep[]> {
    return (await Promise.all(BOTH.map(async (family) => await this.#found(family)))).flat()
  }

  async #found(family: Family): Promise<readonly RoutingStep[]> {
    const rules = await this.#run('ip', [`-${family}`, '-j', 'rule'])
    if (rules.code !== 0 && family === 6) return [] // no IPv6 here
    if (rules.code !== 0) throw toolError('ip', ['rule'], rules)
    const all = ['route', 'show', 'table', 'all', 'proto', PROTOCOL]
    const routes = await this.#run('ip', [`-${family}`, '-j', ...all])
    return foundSteps(family, parseRules(rules.stdout), routes.code === 0 ? routes.stdout : '')
  }
}

/** Returns a text for people, such as `ip -4 rule pref 54 fwmark 0x4e47 lookup 20039 protocol 78`. */
export function routingText({ add: [family, object, , ...words] }: RoutingStep): string {
  return ['ip', family, object, ...words].join(' ')
}

/** Makes the error for a rule or route of another program that is where namegate's must be. */
export function inTheWay(reason: string): UnavailableError {
  return new UnavailableError(`Cannot intercept: ${reason}`)
}

function has(list: readonly RoutingStep[], { add }: RoutingStep): boolean {
  return list.some((each) => each.add.join(' ') === add.join(' '))
}
