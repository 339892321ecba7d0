// The subjects, their loads, and what each of them lacks. Data only.

export const SUBJECTS = [
  'direct',
  'namegate',
  'namegate-default-bounds',
  'namegate-tproxy',
  'namegate-nftables',
  'dnsdist',
  'unbound',
  'dnsmasq',
  'dnsmasq-nftset',
] as const
export type SubjectName = (typeof SUBJECTS)[number]

/** `steady`: 20,000 learned names. `new`: each name and address for the first time. `tcp`: the
 *  steady names, pipelined on 16 connections. `tcp-single`: the same, each on a connection of its own. */
export const LOADS = ['steady', 'new', 'tcp', 'tcp-single'] as const
export type LoadName = (typeof LOADS)[number]

/** `direct` asks the upstream itself: the floor of latency, and the limit of generator and upstream. */
export const LOADS_OF: Readonly<Record<SubjectName, readonly LoadName[]>> = {
  direct: ['steady', 'new', 'tcp', 'tcp-single'],
  namegate: ['steady', 'new', 'tcp', 'tcp-single'],
  'namegate-default-bounds': ['new'],
  'namegate-tproxy': ['steady'],
  'namegate-nftables': ['steady', 'new'],
  dnsdist: ['steady', 'new', 'tcp', 'tcp-single'],
  unbound: ['steady', 'new', 'tcp', 'tcp-single'],
  dnsmasq: ['steady', 'new'],
  'dnsmasq-nftset': ['steady', 'new'],
}

/** Rows of the second table: the work before an answer leaves. */
export const ABILITIES: readonly (readonly [
  ability: string,
  done: Readonly<Record<string, string>>,
])[] = [
  row(
    'refuses names by policy, per workload',
    'yes',
    'rules by client net',
    'views by client net',
    'for all alike',
    'for all alike',
  ),
  row('tells the kernel which addresses a name has', 'yes', 'no', 'no', 'no', 'yes'),
  row('… before the answer is released', 'yes', '-', '-', '-', 'yes'),
  row('… and holds the answer back when the kernel refuses', 'yes', '-', '-', '-', 'no: logs'),
  row('forgets addresses by TTL, grace and open connections', 'yes', '-', '-', '-', 'no'),
  row('drops egress to other addresses by itself', 'yes', 'no', 'no', 'no', 'own nft rules'),
  row('different rights for different workloads', 'yes', 'no', 'no', 'no', 'no: one set'),
  row('checks id, question and peer of answers', 'yes', 'yes', 'yes', 'yes', 'yes'),
  row('caches answers (switched off here)', 'no', 'yes', 'yes', 'yes', 'yes'),
]

function row(
  ability: string,
  namegate: string,
  dnsdist: string,
  unbound: string,
  dnsmasq: string,
  nftset: string,
): readonly [string, Readonly<Record<string, string>>] {
  return [ability, { namegate, dnsdist, unbound, dnsmasq, 'dnsmasq-nftset': nftset }]
}
