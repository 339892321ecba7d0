// `lintTransports` finds rules that permit a name over UDP but not over TCP, or over TCP but not over UDP. A resolver asks over UDP. It
// asks again over TCP if the answer was truncated or suspicious. So a name that is permitted over one protocol works only sometimes. A name
// is not reported if any rule of the same policy permits it over the other protocol, whatever peers the rule has.

import { ANY_PROTOCOL, formatProtocol, TCP, UDP, type DnsProtocol } from '../core/protocol.ts'
import { permitsEveryName } from '../policy/compile/dns-rules.ts'
import type { Pattern } from '../policy/match/pattern.ts'
import type { Policy, PortRule, Rule } from '../policy/rule.ts'
import type { Finding } from './finding.ts'
import { coversPattern } from './siblings.ts'

const WHY: Readonly<Record<DnsProtocol, string>> = {
  [UDP]: 'queries over TCP, which resolvers send when an answer is too long for UDP, are refused',
  [TCP]: 'queries over UDP, which resolvers send first, are refused',
}

/** Returns one finding for each rule of the policy with such a name. */
export function lintTransports({ rules }: Policy): readonly Finding[] {
  return rules.flatMap((rule) => {
    const only = ([UDP, TCP] as const).find((protocol) => {
      const other = protocol === UDP ? TCP : UDP
      if (rules.some((each) => permitsEveryName(each, other))) return false
      const permitted = rules.flatMap((each) => namesFor(each, other))
      return namesFor(rule, protocol).some(
        (name) => !permitted.some((each) => coversPattern(each, name)),
      )
    })
    return only === undefined ? [] : [finding(rule, only)]
  })
}

function finding({ position }: Rule, protocol: DnsProtocol): Finding {
  const message = `rules.dns is for ${formatProtocol(protocol)} only: ${WHY[protocol]}`
  return { position, code: 'one-transport', message, remedy: 'write protocol: ANY' }
}

function namesFor({ toPorts = [] }: Rule, protocol: DnsProtocol): readonly Pattern[] {
  return toPorts.flatMap((entry) => (isFor(entry, protocol) ? (entry.dns ?? []) : []))
}

function isFor({ ports }: PortRule, wanted: DnsProtocol): boolean {
  return ports.some(({ protocol }) => protocol === ANY_PROTOCOL || protocol === wanted)
}
