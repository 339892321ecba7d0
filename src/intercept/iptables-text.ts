// This file renders a plan as text for iptables-restore and ip6tables-restore, for hosts without nftables. One text serves both
// programs: each program skips lines that begin with the other family. The text fills only chains with namegate's own names, so
// --noflush loads it beside all other rules. Comments in the text contain the routing and the way to remove everything. The
// functions are pure.
//
// The rules do what nft-script.ts does, except for two things that iptables cannot do. iptables never sees frames between two
// ports of a bridge, so the datapath must handle these frames. And no iptables chain comes before br_netfilter.

import { formatPrefix, parsePrefix, type Family } from '../core/ip.ts'
import { hex } from './nft-text.ts'
import { DNS_PORT, type InterceptPlan, type RedirectPart, type Target } from './plan.ts'
import { routingSteps } from './routing.ts'
import type { PartNames } from './targets.ts'

const FAMILIES = [4, 6] as const
const PROTOCOLS = ['udp', 'tcp'] as const
const ANYWHERE = { 4: '127.0.0.1', 6: '::1' } as const

const ROUTING_TEXT = [
  '# For pods behind a bridge: sysctl net.bridge.bridge-nf-call-iptables=0 net.bridge.bridge-nf-call-ip6tables=0',
  '# TPROXY needs this routing, too:',
]

/** namegate's chains, and where a packet enters them. */
const CHAINS = {
  untracked: { table: 'raw', from: 'PREROUTING', name: 'NAMEGATE_QUERIES' },
  answers: { table: 'raw', from: 'OUTPUT', name: 'NAMEGATE_ANSWERS' },
  take: { table: 'mangle', from: 'PREROUTING', name: 'NAMEGATE_TAKE' },
  redirect: { table: 'nat', from: 'OUTPUT', name: 'NAMEGATE_REDIRECT' },
  guard: { table: 'filter', from: 'OUTPUT', name: 'NAMEGATE_GUARD' },
} as const

type ChainKey = keyof typeof CHAINS
interface ChainText {
  readonly key: ChainKey
  readonly rules: readonly string[]
}

export function iptablesText(plan: InterceptPlan, names: readonly PartNames[]): string {
  const chains = [
    ...(plan.tproxy.length > 0 ? tproxyChains(plan, names) : []),
    ...(plan.redirect === undefined ? [] : redirectChains(plan, plan.redirect)),
  ]
  const steps = routingSteps(plan)
  return [
    '# For both families: iptables-restore --noflush FILE; ip6tables-restore --noflush FILE',
    ...(steps.length === 0 ? [] : ROUTING_TEXT),
    ...steps.map(({ add }) => `# ip ${add.join(' ')}`),
    ...tableTexts(chains),
    '# To remove, with iptables and with ip6tables:',
    ...chains.flatMap(({ key }) => removal(key)),
    ...steps.toReversed().map(({ remove }) => `#   ip ${remove.join(' ')}`),
    '',
  ].join('\n')
}

function tableTexts(chains: readonly ChainText[]): readonly string[] {
  const tables = [...new Set(chains.map(({ key }) => CHAINS[key].table))]
  return tables.flatMap((table) => {
    const own = chains.filter(({ key }) => CHAINS[key].table === table)
    return [
      `*${table}`,
      ...own.map(({ key }) => `:${CHAINS[key].name} - [0:0]`),
      // The jumps come first, so that rules of other programs do not come before them.
      ...own.flatMap(({ key }) => jumps(key)),
      ...own.flatMap(({ key, rules }) => rules.map((rule) => withChain(rule, CHAINS[key].name))),
      'COMMIT',
    ]
  })
}

/** A rule that is for one family begins with that family: `-4 -p udp ...`. */
function withChain(rule: string, name: string): string {
  const family = /^-[46] /.exec(rule)?.[0] ?? ''
  return `${family}-A ${name} ${rule.slice(family.length)}`
}

function jumps(key: ChainKey): readonly string[] {
  const { from, name } = CHAINS[key]
  return PROTOCOLS.map((protocol) => `-I ${from} 1 -p ${protocol} ${portOf(key)} -j ${name}`)
}

function portOf(key: ChainKey): string {
  return key === 'answers' ? `--sport ${DNS_PORT}` : `--dport ${DNS_PORT}`
}

function removal(key: ChainKey): readonly string[] {
  const { table, from, name } = CHAINS[key]
  return [
    ...PROTOCOLS.map(
      (protocol) => `#   iptables -t ${table} -D ${from} -p ${protocol} ${portOf(key)} -j ${name}`,
    ),
    `#   iptables -t ${table} -F ${name}; iptables -t ${table} -X ${name}`,
  ]
}

function tproxyChains(plan: InterceptPlan, names: readonly PartNames[]): readonly ChainText[] {
  const taken = plan.tproxy.map((part, i) => [
    ...(names[i]?.routed ?? []),
    ...part.beginnings.map((beginning) => `${beginning}+`),
  ])
  const all = [...new Set(taken.flat())]
  return [
    {
      key: 'untracked',
      rules: ['-i lo -j RETURN', ...all.map((name) => `-i ${name} -j CT --notrack`)],
    },
    {
      key: 'answers',
      rules: ['-o lo -j RETURN', ...all.map((name) => `-o ${name} -j CT --notrack`)],
    },
    {
      key: 'take',
      rules: [
        '-i lo -j RETURN',
        ...plan.tproxy.flatMap(({ targets }, i) =>
          (taken[i] ?? []).flatMap((name) => [
            `-i ${name} -m rpfilter --invert -j DROP`,
            ...FAMILIES.flatMap((family) => tproxyRules(family, targets[family], name, plan.mark)),
            `-i ${name} -j DROP`,
          ]),
        ),
      ],
    },
  ]
}

function tproxyRules(
  family: Family,
  target: Target | undefined,
  name: string,
  mark: number,
): readonly string[] {
  if (target === undefined) return []
  const address = target.address === undefined ? '' : ` --on-ip ${target.address}`
  return PROTOCOLS.map(
    (protocol) =>
      `-${family} -i ${name} -p ${protocol} -j TPROXY --on-port ${target.port}${address}` +
      ` --tproxy-mark ${hex(mark)}/0xffffffff`,
  )
}

function redirectChains(plan: InterceptPlan, part: RedirectPart): readonly ChainText[] {
  const user = `-m owner --uid-owner ${part.uid}`
  const own = ownMatches(plan, part, user)
  const isListener = FAMILIES.some((family) => part.targets[family]?.port === DNS_PORT)
  return [
    {
      key: 'redirect',
      rules: [
        ...own.map((match) => `${match} -j RETURN`),
        ...FAMILIES.flatMap((family) => redirectRules(family, part.targets[family])),
      ],
    },
    {
      key: 'guard',
      rules: [
        ...(plan.tproxy.length > 0 ? ['-m conntrack --ctstate UNTRACKED -j RETURN'] : []),
        // These packets answer a client that asks from port 53, or go to a listener there.
        `-m conntrack --ctstate DNAT${isListener ? '' : ' --ctdir REPLY'} -j RETURN`,
        ...own.map((match) => `${match} -j RETURN`),
        // The last packets of namegate's own TCP connections have no user.
        ...ownMatches(plan, part, '-p tcp ! --syn').map((match) => `${match} -j RETURN`),
        '-j DROP',
      ],
    },
  ]
}

function ownMatches(
  { mark }: InterceptPlan,
  { exempt }: RedirectPart,
  who: string,
): readonly string[] {
  const rest = `-m mark --mark ${hex(mark)}/0xffffffff ${who}`
  if (exempt === undefined) return [rest]
  return FAMILIES.flatMap((family) =>
    exempt[family].map((server) => `-${family} -d ${prefixText(server)} ${rest}`),
  )
}

function redirectRules(family: Family, target: Target | undefined): readonly string[] {
  if (target === undefined) return []
  const { address, port } = target
  const socket = family === 4 ? `${address}:${port}` : `[${address}]:${port}`
  const then =
    address === undefined || address === ANYWHERE[family]
      ? `REDIRECT --to-ports ${port}`
      : `DNAT --to-destination ${socket}`
  return PROTOCOLS.map((protocol) => `-${family} -p ${protocol} -j ${then}`)
}

function prefixText(server: string): string {
  const result = parsePrefix(server)
  return result.kind === 'ok' ? formatPrefix(result.prefix) : server
}
