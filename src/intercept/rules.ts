// Rules installs a plan and removes it, all or nothing. The caller holds the lock (state/lock.ts). A flag tells the
// datapath to let DNS pass on an interface.
//
// - up: check that no rule or route is in the way; make the routing; clear flags that will be invalid; install the rules in one
//   transaction; forget earlier connections of port 53; set the flags. If a step fails, the steps before it are undone in reverse order.
//   The first rules of mode redirect come in two transactions: those that drop come after the kernel has forgotten connections.
// - down: clear the flags; empty the tables; forget connections; remove the tables and the routing. `down` finds everything by
//   namegate's names and numbers, so it needs no plan.
//
// In this order no DNS leaks at any moment, because the datapath lets port 53 pass only while the rules exist.

import { createHash } from 'node:crypto'
import { UnavailableError } from '../core/errors.ts'
import { DESTINATION_REWRITTEN, type Flow } from '../native/netfilter/conntrack.ts'
import type { InterceptedInterface } from '../datapath/abilities.ts'
import { findCgroups, type CgroupLevel } from './cgroups.ts'
import { inTheWay, KernelRouting, routingText } from './kernel-routing.ts'
import { DNS_PORT, type InterceptPlan, type Target } from './plan.ts'
import {
  bridgesChanged,
  emptyScript,
  installScript,
  levelsChanged,
  removeScript,
  TABLE,
  updateScript,
  type NftOptions,
} from './nft-script.ts'
import { foreignRule, parseChains, parseInForce, type InForce } from './ruleset.ts'
import { digestScript } from './rule-digests.ts'
import { findTargets, parseLinks, type EndpointPlaces, type Targeted } from './targets.ts'
import { mustRun, toolError, type RunTool } from './tools.ts'

/** The interfaces on which the datapath lets DNS pass. */
export interface InterceptFlags {
  read(): readonly InterceptedInterface[]
  set(interfaces: readonly InterceptedInterface[]): void
}

export interface RulesOptions {
  readonly run: RunTool
  readonly flags: InterceptFlags
  /** Forgets connections of port 53 except those that `isKept` names. Returns how many it forgot, or a negative errno. */
  readonly forgetFlows: (isKept: (flow: Flow) => boolean) => number
}

interface Found extends Targeted {
  /** The cgroups that a redirect for cgroups takes. */
  readonly cgroups: readonly CgroupLevel[]
}

const KINDS = ['inet', 'bridge'] as const
const BRIDGE_PROBE = `add table bridge ${TABLE}
add chain bridge ${TABLE} probe { type filter hook forward priority -200; }
`

export class Rules {
  readonly #run: RunTool
  readonly #routing: KernelRouting
  readonly #flags: InterceptFlags
  readonly #forgetFlows: RulesOptions['forgetFlows']

  constructor({ run, flags, forgetFlows }: RulesOptions) {
    this.#run = run
    this.#routing = new KernelRouting(run)
    this.#flags = flags
    this.#forgetFlows = forgetFlows
  }

  /** namegate's rules in the kernel, or undefined if there are none. */
  async inForce(): Promise<InForce | undefined> {
    const tables = await Promise.all(KINDS.map(async (kind) => await this.#list(kind, ['-j'])))
    const found = tables.filter((each) => each !== undefined)
    return found.length === 0 ? undefined : parseInForce(...found)
  }

  /** Replaces namegate's rules in force with the rules of the plan. Returns notes for people. */
  async up(plan: InterceptPlan, endpoints: EndpointPlaces): Promise<readonly string[]> {
    const notes = [...plan.notes, ...(await this.#lookAround(plan))]
    const targets = await this.#targets(plan, endpoints)
    const withBridge = await this.#canBridge(plan, targets)
    const undo: (() => Promise<unknown>)[] = []
    try {
      await this.#routing.make(plan, undo)
      const before = await this.#texts()
      const flags = this.#flags.read()
      undo.push(async () => await Promise.resolve(this.#flags.set(flags)))
      this.#keepFlags(flags, targets)
      undo.push(async () => await this.#restore(before))
      // `guard` drops connections from before, which are not redirected. So the kernel forgets them first.
      const isFirst = plan.redirect !== undefined && before.trim() === ''
      if (isFirst) await this.#install(plan, targets, { withBridge, withGuard: false })
      const forget = (): readonly string[] => this.#forget((flow) => isRedirected(plan, flow))
      if (isFirst) forget()
      await this.#install(plan, targets, { withBridge })
      notes.push(...forget())
      await this.#noteDigests()
      this.#flags.set(targets.interfaces)
    } catch (error) {
      for (const step of undo.toReversed()) await step().catch(() => undefined)
      throw error
    }
    return notes
  }

  /**
   * Keeps the rules of an earlier process if they belong to the same plan. It then updates only routing and interfaces, so
   * connections continue, also translated connections. Returns notes, or undefined if other rules or no rules are in force.
   */
  async keep(
    plan: InterceptPlan,
    endpoints: EndpointPlaces,
  ): Promise<readonly string[] | undefined> {
    const found = await this.inForce()
    if (found?.about !== aboutOf(plan)) return undefined
    const notes = [...plan.notes, ...(await this.#lookAround(plan))]
    await this.#routing.make(plan, [])
    await this.update(plan, endpoints, found)
    return notes
  }

  /** The routing that a plan in force needs and that is missing, as texts. */
  async missingRouting(plan: InterceptPlan): Promise<readonly string[]> {
    return (await this.#routing.missing(plan)).map(routingText)
  }

  /** Puts back the missing routing, and returns it as texts. */
  async mendRouting(plan: InterceptPlan): Promise<readonly string[]> {
    return (await this.#routing.make(plan, [])).map(routingText)
  }

  /** Throws UnavailableError if a rule or route of another program takes queries elsewhere. */
  async lookForForeignRouting(plan: InterceptPlan): Promise<void> {
    await this.#routing.lookAround(plan)
  }

  /**
   * Updates the interfaces and cgroups of a plan that is in force as `found`, and installs all rules again if they are damaged. Writes only
   * what is out of date.
   */
  async update(plan: InterceptPlan, endpoints: EndpointPlaces, found: InForce): Promise<void> {
    const targets = await this.#targets(plan, endpoints)
    const flags = this.#flags.read()
    this.#keepFlags(flags, targets)
    const { parts, interfaces, cgroups } = targets
    const script = updateScript({ names: parts, cgroups }, found.sets)
    const isOld = bridgesChanged(parts, found.sets) || levelsChanged(cgroups, found.sets)
    if (found.damage.length > 0 || isOld) {
      await this.#install(plan, targets, { withBridge: await this.#canBridge(plan, targets) })
      await this.#noteDigests()
    } else if (script !== '') await mustRun(this.#run, 'nft', ['-f', '-'], script)
    const isSame =
      flags.length === interfaces.length && interfaces.every((each) => isIn(each, flags))
    if (!isSame) this.#flags.set(interfaces)
  }

  /** Replaces all of namegate's rules in one transaction. */
  async #install(
    plan: InterceptPlan,
    { parts, cgroups }: Found,
    { withBridge, withGuard }: Pick<NftOptions, 'withBridge' | 'withGuard'>,
  ): Promise<void> {
    const about = aboutOf(plan)
    const script = installScript({ plan, names: parts, cgroups, about, withBridge, withGuard })
    const isStale = !withBridge && (await this.#list('bridge', [])) !== undefined
    const stale = isStale ? removeScript(['bridge']) : ''
    await mustRun(this.#run, 'nft', ['-f', '-'], `${stale}${script}`)
  }

  /** Writes the digests of the rules that were just installed. */
  async #noteDigests(): Promise<void> {
    const found = await this.inForce()
    if (found !== undefined) await mustRun(this.#run, 'nft', ['-f', '-'], digestScript(found.parts))
  }

  /** Makes the datapath let no DNS pass, because no rule redirects it. */
  clearFlags(): void {
    this.#flags.set([])
  }

  /** Removes all of namegate's rules and routing. `removed` is true if there were any. */
  async down(): Promise<{ readonly removed: boolean; readonly notes: readonly string[] }> {
    this.clearFlags()
    const there: ('inet' | 'bridge')[] = []
    for (const kind of KINDS) if ((await this.#list(kind, [])) !== undefined) there.push(kind)
    const isThere = there.length > 0
    // Without a chain for translation, the kernel drops the answers of connections that it translated. So the chains go last.
    if (isThere) await mustRun(this.#run, 'nft', ['-f', '-'], emptyScript(there))
    const notes = isThere ? this.#forget(() => false) : []
    if (isThere) await mustRun(this.#run, 'nft', ['-f', '-'], removeScript(there))
    const removed = (await this.#routing.remove()) || isThere
    return { removed, notes }
  }

  /** The interfaces and cgroups of the plan, for `show`. */
  async targets(plan: InterceptPlan, endpoints: EndpointPlaces): Promise<Found> {
    return await this.#targets(plan, endpoints)
  }

  async #targets(plan: InterceptPlan, { interfaces, cgroups }: EndpointPlaces): Promise<Found> {
    const links = await mustRun(this.#run, 'ip', ['-j', '-d', 'link'])
    const targets = findTargets(plan, interfaces, parseLinks(links))
    const isAsked = plan.redirect?.ofCgroups === true
    return { ...targets, cgroups: isAsked ? findCgroups(cgroups) : [] }
  }

  /** Keeps the flags that are valid before and after the change. Other flags must be clear while the rules change. */
  #keepFlags(flags: readonly InterceptedInterface[], { interfaces }: Targeted): void {
    const kept = flags.filter((flag) => isIn(flag, interfaces))
    if (kept.length < flags.length) this.#flags.set(kept)
  }

  /** Throws UnavailableError if a rule or route of another program is in the way. */
  async #lookAround(plan: InterceptPlan): Promise<readonly string[]> {
    const chains = parseChains(await mustRun(this.#run, 'nft', ['-j', 'list', 'chains']), plan)
    for (const [family, table] of chains.suspects) {
      const list = await this.#run('nft', ['-j', 'list', 'table', family, table])
      const reason = list.code === 0 ? foreignRule(list.stdout, plan) : undefined
      if (reason !== undefined) throw inTheWay(reason)
    }
    await this.#routing.lookAround(plan)
    return plan.tproxy.length === 0
      ? []
      : chains.closed.map(
          (table) =>
            `table "${table}" drops what comes in unless a rule admits it: admit port 53, UDP and TCP, from the intercepted interfaces`,
        )
  }

  async #canBridge(plan: InterceptPlan, { interfaces }: Targeted): Promise<boolean> {
    if (plan.tproxy.length === 0) return false
    const { code } = await this.#run('nft', ['-c', '-f', '-'], BRIDGE_PROBE)
    if (code === 0) return true
    if (interfaces.every(({ bridgeMac }) => bridgeMac === undefined)) return false
    throw new UnavailableError(
      'Cannot intercept on ports of a bridge: the kernel has no nftables for bridges: modprobe nf_tables_bridge, or leave those interfaces out',
    )
  }

  /** namegate's tables as they are now, as a script. */
  async #texts(): Promise<string> {
    const texts: string[] = []
    for (const kind of KINDS) texts.push((await this.#list(kind, ['-s'])) ?? '')
    return texts.join('\n')
  }

  async #restore(before: string): Promise<void> {
    const gone = KINDS.map((kind) => `add table ${kind} ${TABLE}\ndelete table ${kind} ${TABLE}\n`)
    const { code } = await this.#run('nft', ['-f', '-'], `${gone.join('')}${before}`)
    // Without nftables for bridges, the kernel refuses the whole script.
    if (code !== 0) await this.#run('nft', ['-f', '-'], `${gone[0] ?? ''}${before}`)
  }

  /** Lists one of namegate's tables. Returns undefined if the table does not exist. */
  async #list(kind: 'inet' | 'bridge', flags: readonly string[]): Promise<string | undefined> {
    const args = [...flags, 'list', 'table', kind, TABLE]
    const result = await this.#run('nft', args)
    if (result.code === 0) return result.stdout
    if (/no such file|not supported/i.test(result.stderr)) return undefined
    throw toolError('nft', args, result)
  }

  /** Forgets connections from before, because they would not use the new rules. */
  #forget(isKept: (flow: Flow) => boolean): readonly string[] {
    const result = this.#forgetFlows(isKept)
    if (result >= 0) return []
    return [
      `flows of port 53 from before could not be forgotten (errno ${-result}): an open socket may get no answer until it is opened again`,
    ]
  }
}

/** Names a plan, in at most 128 octets. Two plans have the same text exactly if their rules differ only in interfaces and cgroups. */
export function aboutOf(plan: InterceptPlan): string {
  const names = plan.tproxy.map(() => ({ routed: [], bridges: [], ports: [] }))
  const script = installScript({ plan, names, cgroups: [], about: '', withBridge: true })
  const hash = createHash('sha256').update(`${script}${plan.table}`).digest('hex').slice(0, 16)
  const uid = plan.redirect === undefined ? '' : ` uid ${plan.redirect.uid}`
  return `plan ${hash} mark ${plan.mark} table ${plan.table}${uid}`
}

function isIn(one: InterceptedInterface, list: readonly InterceptedInterface[]): boolean {
  return list.some((each) => textOf(each) === textOf(one))
}

function textOf({ ifindex, families, bridgeMac }: InterceptedInterface): string {
  return [ifindex, families[4], families[6], bridgeMac?.join('-')].join()
}

/** True if the rules of the plan redirected the connection to the listener. A query on it can wait for its answer. */
function isRedirected({ redirect }: InterceptPlan, { status, reply }: Flow): boolean {
  const targets = Object.values(redirect?.targets ?? {})
  // Other programs redirect to port 53, too.
  const isListener = ({ port }: Target): boolean => port !== DNS_PORT && port === reply.sourcePort
  return (status & DESTINATION_REWRITTEN) !== 0 && targets.some(isListener)
}
