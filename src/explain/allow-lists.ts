// The parts of an explanation that are about allow-lists. The writer of a list knows lines and no rules, so the explanation names lines.
// The rule that lets an endpoint ask the names of a list stands for all its lines and has no line of its own.

import { formatAddress } from '../core/ip.ts'
import { formatName } from '../core/name.ts'
import { formatProtocol } from '../core/protocol.ts'
import { isKnownClass } from '../ipcache/derive.ts'
import { allowName, allowText } from '../policy/allow-text.ts'
import type { RuleOrigin } from '../policy/compile/compile.ts'
import { isDnsConnection } from '../policy/dns-connection.ts'
import { matches } from '../policy/match/pattern.ts'
import type { Policy, Rule } from '../policy/rule.ts'
import type { Explanation, Question } from './explanation.ts'
import type { Peer } from './peer.ts'

/** Returns the files of the policies if all are allow-lists; else, and without policies, an empty list. */
export function filesOfLists(policies: readonly Policy[]): readonly string[] {
  if (policies.some(({ kind }) => kind !== 'AllowList')) return []
  return [...new Set(policies.map(({ position }) => position.file))]
}

/** Returns words such as `line of web.allow` for an endpoint that has only allow-lists; else `rule`. */
export function wordForRule(policies: readonly Policy[]): string {
  const files = filesOfLists(policies)
  return files.length === 0 ? 'rule' : `line of ${files.join(' or ')}`
}

/** Returns the lines of a list that permit a name, in place of the one rule of the list. Returns other rules as they are. */
export function permittingLines(origin: RuleOrigin, name: Uint8Array): readonly RuleOrigin[] {
  const { policy } = origin
  if (policy.kind !== 'AllowList') return [origin]
  return policy.rules.filter((rule) => names(rule, name)).map((rule) => ({ policy, rule }))
}

function names({ peers }: Rule, name: Uint8Array): boolean {
  if (peers.kind === 'any') return false
  return peers.selectors.some((each) => each.kind === 'fqdn' && matches(each.pattern, name))
}

/** True for the one rule by which the names of a list can be asked. */
export function isAskingOfList({ policy, rule }: RuleOrigin): boolean {
  return policy.kind === 'AllowList' && rule.peers.kind === 'any'
}

/** Returns the line that would let the endpoint ask a name, and the list to add it to. Null if the endpoint has other policies, too. */
export function lineForName(policies: readonly Policy[], name: Uint8Array): Explanation['add'] {
  return lineIn(policies, allowName(formatName(name)))
}

/** Returns a note about a line with a name alone, which allows more than the question. */
export function everyPortNote(add: Explanation['add']): readonly string[] {
  if (add === null) return []
  return [`the line ${add.text} allows every port, and ${add.text}:PORT one port`]
}

/** Returns the line that would let the endpoint connect. `known`: names that led to the address. Null if no line would help. */
export function lineForPeer(
  policies: readonly Policy[],
  { name, protocol, port }: Extract<Question, { readonly kind: 'connect' }>,
  { family, address, addressClass, isGuarded }: Peer,
  known: readonly string[],
): Explanation['add'] {
  const text = formatProtocol(protocol)
  if (isDnsConnection(text, port)) return null
  const names = name === undefined ? known : [formatName(name)]
  const [host] = isGuarded ? [] : names
  if (host !== undefined) return lineIn(policies, allowText({ host, port, protocol: text }))
  if (address === undefined || isKnownClass(addressClass)) return null
  const own = formatAddress(family, address.octets)
  return lineIn(policies, allowText({ host: own, port, protocol: text }))
}

function lineIn(policies: readonly Policy[], text: string | undefined): Explanation['add'] {
  const [file] = filesOfLists(policies)
  return file === undefined || text === undefined ? null : { file, text }
}
