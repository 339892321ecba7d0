// Checks the rules and routes of other programs for `namegate doctor`: those that take DNS, drop DNS, or use namegate's mark or
// routing table.

import { join } from 'node:path'
import type { Config } from '../../config/config.ts'
import { ownAddresses, systemResolvers } from '../../config/machine.ts'
import { resolveUpstreams } from '../../config/upstreams.ts'
import { InvalidInputError, messageOf, UnavailableError } from '../../core/errors.ts'
import { formatAddress } from '../../core/ip.ts'
import { planOf } from '../../daemon/open-interception.ts'
import { KernelRouting } from '../../intercept/kernel-routing.ts'
import { hex } from '../../intercept/nft-text.ts'
import type { InterceptPlan } from '../../intercept/plan.ts'
import { isMissing, toolError } from '../../intercept/tools.ts'
import { Findings, isTransparent, type Check, type Examined, type Finding } from './finding.ts'
import { foreignRuleset, type Effect, type ForeignRule } from './firewall-rules.ts'

/** Most rules that are listed one by one. */
const RULES_SHOWN = 5

export const checkFirewall: Check = async ({ machine, config }) => {
  const finding = new Findings('firewall')
  const args = ['-j', 'list', 'ruleset']
  const result = await machine.run('nft', args)
  if (result.code !== 0) {
    const reason = messageOf(toolError('nft', args, result))
    const isNeeded = config.datapath.kind === 'nftables' || isTransparent(config)
    const remedy = isMissing(result) ? 'apt-get install nftables' : RUN_AS_ROOT
    if (isMissing(result) && isNeeded) return [finding.problem(reason, remedy)]
    return [finding.unchecked(reason, remedy)]
  }
  const { rules, closed } = foreignRuleset(result.stdout, config.intercept.mark)
  const relevant = rules.filter(({ effect }) => effect !== 'marks' || isTransparent(config))
  const findings = relevant.slice(0, RULES_SHOWN).map((rule) => judgeRule(finding, rule, config))
  if (relevant.length > RULES_SHOWN) {
    const more = relevant.length - RULES_SHOWN
    findings.push(finding.warning(`${more} more such rules`, 'nft -a list ruleset'))
  }
  if (config.listeners.some(({ mode }) => mode === 'tproxy')) {
    findings.push(...closed.map((chain) => judgeClosed(finding, chain)))
  }
  findings.push(...legacyRules(finding, machine))
  return findings.length > 0 ? findings : [finding.ok('no rule of another program touches DNS')]
}

const RUN_AS_ROOT = 'run this command as root'

const DOES: Readonly<Record<Effect, string>> = {
  turns: 'sends port 53 elsewhere',
  drops: 'drops port 53',
  marks: "uses namegate's mark",
}

function judgeRule(finding: Findings, rule: ForeignRule, config: Config): Finding {
  const { effect, statement, chain, handle } = rule
  const mark = effect === 'marks' ? ` ${hex(config.intercept.mark)}` : ''
  const found = `a rule of chain "${chain}" ${DOES[effect]}${mark} (${statement})`
  if (effect === 'marks') {
    return finding.warning(found, 'give intercept.mark a number that no other program uses')
  }
  const remedy = `if it must not: nft delete rule ${chain} handle ${handle}`
  return effect === 'turns' && isTransparent(config)
    ? finding.problem(found, remedy)
    : finding.warning(found, remedy)
}

function judgeClosed(finding: Findings, chain: string): Finding {
  return finding.warning(
    `chain "${chain}" drops incoming packets that no rule accepts`,
    `accept DNS of the workloads, such as: nft insert rule ${chain} meta l4proto { tcp, udp } th dport 53 accept`,
  )
}

/** Rules of iptables-legacy are in the kernel, too, and nft does not show them. */
function legacyRules(finding: Findings, machine: Examined['machine']): readonly Finding[] {
  const tables = ['ip', 'ip6'].flatMap((family) =>
    (machine.read(`/proc/net/${family}_tables_names`) ?? '')
      .split('\n')
      .filter((each) => each !== ''),
  )
  if (tables.length === 0) return []
  const names = [...new Set(tables)].join(', ')
  return [
    finding.unchecked(
      `iptables-legacy has tables (${names}), which nft does not show`,
      "iptables-legacy-save | grep -e 'port.* 53' -e MARK",
    ),
  ]
}

/** Finds rules and routes of other programs that are where those of TPROXY must be. */
export const checkRouting: Check = async ({ machine, config }) => {
  const finding = new Findings('routing')
  try {
    const plan = interceptPlan(machine.root, config)
    if (plan === undefined || plan.tproxy.length === 0) {
      return [finding.ok('not needed: no listener has mode tproxy')]
    }
    await new KernelRouting(machine.run).lookAround(plan)
    const { mark, table } = plan
    return [finding.ok(`mark ${hex(mark)} and routing table ${table} are free for namegate`)]
  } catch (error) {
    if (!(error instanceof UnavailableError) && !(error instanceof InvalidInputError)) throw error
    return [finding.problem(messageOf(error))]
  }
}

function interceptPlan(root: string, config: Config): InterceptPlan | undefined {
  const { upstreams, listeners } = config
  const { addresses } = resolveUpstreams(upstreams.servers, listeners, ownAddresses(), () =>
    systemResolvers(join(root, '/etc/resolv.conf')),
  )
  const servers = addresses.map(({ family, octets, port }) => {
    return { family, address: formatAddress(family, octets), port }
  })
  return planOf(config, servers, process.geteuid?.() ?? 0)
}
