// `loadAllowList` reads allow-lists: `*.allow` files with one `TARGET[:PORT[/PROTOCOL]]` per line, where `#` begins a comment. A list
// becomes one policy for the endpoints that `policies.allow-list-endpoints` selects. The policy lets these endpoints ask the names of the
// list, and reach its names and addresses at the given ports. It turns default deny on. The loader has no side effects, and never throws on
// any text.

import type { Fault } from '../../core/errors.ts'
import { SCTP, TCP, UDP } from '../../core/protocol.ts'
import { allowLines, type Allow } from '../allow-line.ts'
import { DNS_PORT } from '../compile/dns-rules.ts'
import type { Pattern } from '../match/pattern.ts'
import type { LabelSelector, Policy, Rule } from '../rule.ts'

const PROTOCOL_NUMBERS = { TCP, UDP } as const

/** Reads one allow-list. Returns one policy, or the faults of all lines and no policy. `file` is the name in faults and of the policy. */
export function loadAllowList(
  text: string,
  file: string,
  selector: LabelSelector,
): { readonly policies: readonly Policy[]; readonly faults: readonly Fault[] } {
  const faults: Fault[] = []
  const allows: Rule[] = []
  const names: Pattern[] = []
  for (const { line, column, read } of allowLines(text)) {
    const position = { file, line, column }
    if (read.kind === 'ok') {
      const { target } = read.allow
      if (target.kind === 'name') names.push(target.pattern)
      allows.push({ ...reachRule(read.allow), position })
    } else {
      const at = column + read.column - 1
      faults.push({ position: { ...position, column: at }, message: read.reason })
    }
  }
  const position = { file, line: 1, column: 1 }
  if (allows.length === 0 && faults.length === 0) {
    const remedy = `write none.invalid to allow nothing; ${toEnd('the list')}`
    faults.push({ position, message: `found no name or address, expected one a line: ${remedy}` })
  }
  if (faults.length > 0) return { policies: [], faults }
  const ports = [TCP, UDP, SCTP].map((protocol) => ({ protocol, low: DNS_PORT, high: DNS_PORT }))
  const ask: Rule = {
    action: 'allow',
    peers: { kind: 'any' },
    toPorts: [{ ports, dns: names }],
    position,
  }
  const name = file.replace(/^.*\//, '').replace(/\.allow$/, '')
  const whole = { name, namespace: undefined, kind: 'AllowList', selector, position } as const
  return { policies: [{ ...whole, rules: [ask, ...allows], defaultDeny: true }], faults }
}

/** The remedy for an emptied file, whose last version stays in force. `what`: what the file says. */
export function toEnd(what: string): string {
  return `to take ${what} out of force, delete the file from its folder, or take it out of the configuration`
}

function reachRule({ target, port, protocols }: Allow): Omit<Rule, 'position'> {
  const [low, high] = port === 0 ? [0, 65_535] : [port, port]
  const ports = protocols.map((each) => ({ protocol: PROTOCOL_NUMBERS[each], low, high }))
  const selector =
    target.kind === 'name'
      ? ({ kind: 'fqdn', pattern: target.pattern } as const)
      : ({ kind: 'cidr', prefix: target.prefix, except: [] } as const)
  return {
    action: 'allow',
    peers: { kind: 'selectors', selectors: [selector] },
    toPorts: [{ ports, dns: undefined }],
  }
}
