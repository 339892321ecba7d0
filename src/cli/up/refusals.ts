// Refusals turns flows into lines for people: what was refused, why, and how to allow it in the list that the daemon watches. The
// first refusal of a name or connection is a line at once. Later ones are counted, and `repeated` returns one line for each. A
// test or caller gives the flows, so the code does no I/O.

import type { FlowRule } from '../../client/api-types.ts'
import { whyNoName } from '../../core/name-like.ts'
import { deniedWords, GUARDED } from '../../flows/record/flow-words.ts'
import { allowText } from '../../policy/allow-text.ts'
import { ASK_AGAIN } from '../../policy/dns-connection.ts'
import { fieldsOf, listOf, textOf, type PartOf } from '../fields.ts'
import { allowOfFlow, hasExpired, isDnsDrop } from '../flows/allow-of-flow.ts'
import type { FlowFields } from '../flows/flow-fields.ts'
import { program } from '../program.ts'
import { shellWord } from '../shell-word.ts'
import { cleanCell } from '../table.ts'
import { addLine, type WatchedList } from './watched-list.ts'

interface Seen {
  readonly what: string
  /** The endpoint that was refused. Empty if none is known. */
  readonly endpoint: string
  /** True: policy denied it, and audit let it pass. */
  readonly isAudited: boolean
  more: number
}

/** How many different refusals are remembered. The oldest is forgotten first, and is then a line again. */
const SEEN_MAX = 1000
const COLUMN = 34
const NO_LINE = 'no line of a list can allow it'
const NEW_ADDRESS = 'if it is a new address of the workload, end this command and start it again'
const PROBE = 'harmless if the kernel looks for a neighbour: it repeats that by multicast'
/** The kinds of flows that audit let pass. */
const AUDITED: ReadonlySet<unknown> = new Set(['audited', 'audit'])

export class Refusals {
  readonly #seen = new Map<string, Seen>()
  /** The names for which a line on every port was proposed. */
  readonly #proposed = new Set<string>()
  readonly #list: WatchedList
  readonly #workload: string
  /** True from the first flow of another endpoint than the workload of `up` on. Then each line names its endpoint. */
  #isShared = false

  /** `workload`: the name of the endpoint that `up` protects. A user can add other endpoints to its daemon. */
  constructor(list: WatchedList, workload = '') {
    this.#list = list
    this.#workload = workload
  }

  /** Returns the line of a refusal. Undefined for a repeated refusal, and for other flows. */
  take(flow: FlowFields): string | undefined {
    const refusal = refusalOf(flow, this.#list, this.#proposed)
    if (refusal === undefined) return undefined
    const { what, why, remedy } = refusal
    const isAudited = AUDITED.has(flow.kind)
    const endpoint = typeof flow.endpoint === 'string' ? flow.endpoint : ''
    if (endpoint !== '' && endpoint !== this.#workload) this.#isShared = true
    const key = `${isAudited} ${endpoint} ${textOf(flow.reason)} ${what}`
    const known = this.#seen.get(key)
    if (known !== undefined) {
      known.more++
      return undefined
    }
    const [oldest] = this.#seen.keys()
    if (this.#seen.size >= SEEN_MAX && oldest !== undefined) this.#seen.delete(oldest)
    if (flow.kind === 'denied' || flow.kind === 'audited') this.#propose(allowOfFlow(flow))
    const seen = { what, endpoint, isAudited, more: 0 }
    this.#seen.set(key, seen)
    const verb = verbOf(isAudited)
    const time = textOf(flow.time).slice(11, 19)
    return cleanCell(`${time} ${verb}  ${this.#whatOf(seen)} ${why}; ${remedy}`)
  }

  /** Returns one line for each refusal that was repeated since the last call. */
  repeated(): readonly string[] {
    return [...this.#seen.values()].flatMap((seen) => {
      if (seen.more === 0) return []
      const times = seen.more === 1 ? '1 more time' : `${seen.more} more times`
      seen.more = 0
      const again = (seen.isAudited ? 'again (audit)' : 'again').padEnd(
        verbOf(seen.isAudited).length,
      )
      return [cleanCell(`         ${again}  ${this.#whatOf(seen)} ${times}`)]
    })
  }

  #propose(name: string | undefined): void {
    if (name !== undefined && this.#proposed.size < SEEN_MAX) this.#proposed.add(name)
  }

  #whatOf({ what, endpoint }: Seen): string {
    const whose = this.#isShared && endpoint !== '' ? `${endpoint}: ` : ''
    return `${whose}${what}`.padEnd(COLUMN)
  }
}

function verbOf(isAudited: boolean): string {
  return isAudited ? 'would be refused (audit)' : 'refused'
}

interface Refusal {
  readonly what: string
  readonly why: string
  readonly remedy: string
}

function refusalOf(
  flow: FlowFields,
  list: WatchedList,
  proposed: ReadonlySet<string>,
): Refusal | undefined {
  switch (flow.kind) {
    case 'denied':
    case 'audited':
      return nameRefusal(flow, list)
    case 'drop':
    case 'audit':
      return packetRefusal(flow, list, proposed)
    case 'unknown-client':
    case 'interface-mismatch':
      return {
        what: `a query from ${textOf(flow.client)}`,
        why: 'no workload has this address at this interface',
        remedy: NEW_ADDRESS,
      }
    default:
      return undefined
  }
}

function nameRefusal(flow: FlowFields, list: WatchedList): Refusal {
  const name = textOf(flow.name)
  if (typeof flow.reason === 'string') {
    return {
      what: name,
      why: deniedWords(flow.reason),
      remedy:
        flow.reason === 'server'
          ? 'the workload must ask a DNS server on its port 53, and not namegate itself'
          : `to see why: ${program()} explain ${shellWord(name)}`,
    }
  }
  const why = whyNoName(name)
  if (why !== undefined) {
    const line = allowText({ host: name })
    return line === undefined
      ? { what: name, why: `it ${why}`, remedy: NO_LINE }
      : {
          what: name,
          why: 'an address, asked as a name: no line allows that',
          remedy: `to allow connections to it: ${addLine(line, list)}`,
        }
  }
  return {
    what: name,
    why: 'no rule allows this name',
    remedy: remedyOf(flow, list, 'to allow it on every port'),
  }
}

function packetRefusal(
  flow: FlowFields,
  list: WatchedList,
  proposed: ReadonlySet<string>,
): Refusal {
  const peer = textOf(flow.peer)
  const protocol = textOf(flow.protocol).toLowerCase()
  const host = peer.includes(':') ? `[${peer}]` : peer
  const hasPort = (protocol === 'tcp' || protocol === 'udp') && flow.port !== 0
  const place = hasPort ? `${host}:${textOf(flow.port)}/${protocol}` : `${host} ${protocol}`
  const isExpired = hasExpired(flow)
  const [name] = (isExpired ? [flow.expiredName] : listOf(flow.names)).map(textOf)
  const what = name === undefined ? place : `${place} (${name})`
  const other = otherReason(flow, what)
  if (other !== undefined) return other
  if (flow.deniedBy === 'rule') {
    return {
      what,
      why: `denied by ${rulesText(flow)}`,
      remedy: 'no allow rule outweighs a deny rule',
    }
  }
  if (isExpired) return { what, why: 'its answer has expired', remedy: 'ask the name again' }
  if (isDnsDrop(flow)) {
    return { what, why: 'the packet reached no listener of namegate', remedy: ASK_AGAIN }
  }
  if (listOf(flow.labels).includes('reserved:host')) {
    const remedy = 'a policy with toEntities: [host] allows it (--policy FILE)'
    return { what, why: 'an address of this host', remedy }
  }
  if (!hasPort) {
    const remedy = 'a policy can allow it (--policy FILE)'
    return { what, why: `no rule allows ${protocol}`, remedy }
  }
  if (name !== undefined && flow.guarded !== true && proposed.has(name)) {
    const remedy = remedyOf(flow, list, 'to allow only this port, and not every port')
    return { what, why: 'no rule allows this name on this port', remedy }
  }
  const unknown = flow.guarded === true ? GUARDED : 'no answer contained this address'
  const why = name === undefined ? unknown : 'no rule allows this name on this port'
  return { what, why, remedy: remedyOf(flow, list) }
}

/** The refusal of a packet that was dropped for another reason than the rules of policy for its place. */
function otherReason(
  { reason, deniedBy, protocol }: FlowFields,
  what: string,
): Refusal | undefined {
  switch (reason) {
    case null:
    case undefined:
    case 'policy':
      return undefined
    case 'source': {
      const remedy = protocol === 'ICMPv6' ? PROBE : NEW_ADDRESS
      return { what, why: 'its source is no known address of the workload', remedy }
    }
    case 'malformed':
      // No address of such a packet is known.
      return { what: 'a malformed packet', why: 'its headers cannot be read', remedy: NO_LINE }
    case 'fragment': {
      if (deniedBy === 'rule') return undefined
      const remedy = 'only a line or rule without a port allows it'
      return { what, why: 'a later fragment, which has no port', remedy }
    }
    default:
      return { what, why: `dropped: ${textOf(reason)}`, remedy: NO_LINE }
  }
}

function remedyOf(flow: FlowFields, list: WatchedList, purpose = 'to allow it'): string {
  const line = allowOfFlow(flow)
  return line === undefined ? NO_LINE : `${purpose}: ${addLine(line, list)}`
}

function rulesText(flow: FlowFields): string {
  const rules = listOf(flow.rules).map((rule) => {
    const { policy, file, line }: PartOf<FlowRule> = fieldsOf(rule)
    return `${textOf(policy)} (${textOf(file)}:${textOf(line)})`
  })
  return rules.length === 0 ? 'a deny rule' : rules.join(', ')
}
