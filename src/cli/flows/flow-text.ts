// Formats a flow as one line for people, such as `2026-01-02T03:04:05.678Z deny  shop         A evil.test denied, client 10.0.0.1`. Every word
// that comes from the daemon is clean before it gets a colour.

import type { FlowRule } from '../../client/api-types.ts'
import { parseProtocol, PORT_PROTOCOLS } from '../../core/protocol.ts'
import { fieldsOf, listOf, textOf, type PartOf } from '../fields.ts'
import { deniedWords, GUARDED, outcomeWords } from '../../flows/record/flow-words.ts'
import { isAllowList } from '../../policy/allow-line.ts'
import { addressRemedy, askNameAgain } from '../../policy/allow-text.ts'
import { ASK_AGAIN } from '../../policy/dns-connection.ts'
import { shownLabels } from '../shown-labels.ts'
import { PLAIN, type Look, type Style } from '../style.ts'
import { cleanCell } from '../table.ts'
import { allowOfFlow, hasExpired, isDnsDrop } from './allow-of-flow.ts'
import type { FlowFields } from './flow-fields.ts'

export interface FlowLook {
  readonly style: Style
  /** Formats a time, which is RFC 3339. */
  readonly time: (text: string) => string
}

const PLAIN_LOOK: FlowLook = { style: PLAIN, time: (text) => text }

const LOOKS: ReadonlyMap<string, Look> = new Map([
  ['allow', 'green'],
  ['deny', 'red'],
  ['audit', 'yellow'],
  ['error', 'magenta'],
  ['event', 'cyan'],
])

/** The outcome of most answers. The text leaves it out. */
const EXACT = 'exact'

export function formatFlow(flow: FlowFields, { style, time }: FlowLook = PLAIN_LOOK): string {
  const verdict = textOf(flow.verdict)
  const rest = `${textOf(flow.endpoint).padEnd(12)} ${detailsOf(flow)}${repeated(flow, time)}`
  return [
    style(cleanCell(time(textOf(flow.time))), 'dim'),
    inVerdictColour(style, verdict, verdict.padEnd(5)),
    cleanCell(rest),
  ].join(' ')
}

/** Returns the text in the colour of the verdict. */
export function inVerdictColour(style: Style, verdict: string, text: string): string {
  const look = LOOKS.get(verdict)
  return look === undefined ? cleanCell(text) : style(cleanCell(text), look)
}

/** Returns `, 12 times until 2026-01-02T03:04:05.678Z` for a flow that stands for equal flows, else an empty text. */
function repeated({ count, last }: FlowFields, time: FlowLook['time']): string {
  if (typeof count !== 'number' || count <= 1) return ''
  const shown = time(textOf(last))
  return `, ${count} times${shown === textOf(last) ? ` until ${shown}` : `, last ${shown.trim()}`}`
}

function detailsOf(flow: FlowFields): string {
  switch (flow.kind) {
    case 'drop':
    case 'audit':
      return packetDetails(flow)
    case 'lost':
      return `${textOf(flow.count)} flows were not kept: too many at once`
    case 'policy-lost':
      return `lost its last policy: ${textOf(flow.policies)}`
    case 'expired-use':
      return `connected to ${textOf(flow.peer)}, ${textOf(flow.expired)} s after the TTL of ${textOf(flow.names)} was over`
    case 'answered': {
      const closed = flow.outcome === EXACT ? '' : `, ${outcomeWords(textOf(flow.outcome))}`
      return `${question(flow)} ${textOf(flow.rcode)}${closed}, ${learned(flow.addresses)} learned`
    }
    default: {
      const why = reasonOf(flow)
      return `${question(flow)} ${textOf(flow.kind)}${why}${whyRefused(flow)}, client ${textOf(flow.client)}`
    }
  }
}

function learned(addresses: unknown): string {
  if (addresses === 0) return 'no address'
  return addresses === 1 ? '1 address' : `${textOf(addresses)} addresses`
}

function reasonOf({ kind, reason }: FlowFields): string {
  if (typeof reason !== 'string') return ''
  return kind === 'denied' ? ` (${deniedWords(reason)})` : `: ${reason}`
}

function question(flow: FlowFields): string {
  return `${textOf(flow.type)} ${textOf(flow.name)}`
}

function packetDetails(flow: FlowFields): string {
  const isExpired = hasExpired(flow)
  const peer = textOf(flow.peer)
  const host = peer.includes(':') ? `[${peer}]` : peer
  const to = hasPorts(flow) ? `${host}:${textOf(flow.port)}` : peer
  const what = flow.kind === 'drop' ? 'dropped' : 'would be dropped'
  const names = listOf(flow.names).map(textOf)
  const known = isExpired ? [askNameAgain(textOf(flow.expiredName))] : names
  const about = known.length === 0 && flow.guarded === true ? [GUARDED] : known
  const named = about.length === 0 ? '' : ` (${about.join(', ')})`
  // A line can allow the name of an answer that has expired.
  const why = isExpired ? '' : whyRefused(flow)
  const who = `identity ${textOf(flow.identity)} [${textOf(shownLabels(flow.labels))}]`
  return `${textOf(flow.protocol)} ${to}${named} ${what}: ${textOf(flow.reason)}${why}; ${who}`
}

function whyRefused(flow: FlowFields): string {
  const line = allowOfFlow(flow)
  const isPacket = flow.kind === 'drop' || flow.kind === 'audit'
  const add = isPacket ? `add ${line}` : `add ${line} for every port, or ${line}:PORT`
  const remedy = isDnsDrop(flow) ? ASK_AGAIN : line === undefined ? remedyOf(flow) : add
  const { lists } = behind(flow.rules)
  return `${byRules(flow.rules)}${lists.length === 0 || remedy === undefined ? '' : ` (${remedy})`}`
}

/** What allows a refused packet or query that no line of a list allows. */
function remedyOf(flow: FlowFields): string | undefined {
  const isPacket = flow.kind === 'drop' || flow.kind === 'audit'
  if (!isPacket) return addressRemedy(textOf(flow.name))
  return hasPorts(flow) ? undefined : 'a policy rule without toPorts allows it'
}

function hasPorts({ protocol }: FlowFields): boolean {
  return PORT_PROTOCOLS.includes(parseProtocol(textOf(protocol)) ?? 0)
}

/** Returns ` by default/web (web.yaml:12)`, `: no line of web.allow allows it`, or both. Empty without a rule. */
export function byRules(rules: unknown): string {
  const { places, lists } = behind(rules)
  const by = places.length === 0 ? '' : ` by ${places.join(', ')}`
  return lists.length === 0 ? by : `${by}: no line of ${lists.join(' or ')} allows it`
}

/** Returns `default/web (web.yaml:12), web (web.allow)`: the rules that denied the packet or query, or would have denied it. */
export function formatRules(rules: unknown): string {
  const { places, lists } = behind(rules)
  return [...places, ...lists].join(', ')
}

/** Returns the places of rules, and the allow-lists. A list refuses what none of its lines allows, so it has no place in the file. */
function behind(rules: unknown): {
  readonly places: readonly string[]
  readonly lists: readonly string[]
} {
  const all = listOf(rules).map((rule): PartOf<FlowRule> => fieldsOf(rule))
  const isList = ({ file }: PartOf<FlowRule>): boolean => isAllowList(textOf(file))
  return {
    places: all
      .filter((rule) => !isList(rule))
      .map(({ policy, file, line }) => `${textOf(policy)} (${textOf(file)}:${textOf(line)})`),
    lists: all.filter(isList).map(({ file }) => textOf(file)),
  }
}
