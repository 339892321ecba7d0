// Reads the filters of flows from the parameters of `/v1/flows`, and applies them. Values of one filter are alternatives, and every filter
// must accept a flow. A parameter with `not-` in front leaves out each flow that has one of its values. A filter that can match no flow is
// refused with the reason.

import { nearest } from '../../core/did-you-mean.ts'
import { parseMaskedPrefix } from '../../core/ip.ts'
import { parseName } from '../../core/name.ts'
import { parseProtocol } from '../../core/protocol.ts'
import { FLOW_KINDS, type FlowKind } from '../../flows/record/flow-kinds.ts'
import { parseMatchPattern } from '../../policy/match/pattern.ts'
import { nameFilterOf, oneNameFilter, type FlowFacts, type NameFilter } from './flow-facts.ts'
import type { Parsed } from '../requests.ts'
import { FLOW_FILTERS, verdictOf } from '../views/flows.ts'

export const FLOW_FILTER_KEYS = [
  'endpoint',
  'name',
  'address',
  'port',
  'protocol',
  'verdict',
] as const
export type FlowFilterKey = (typeof FLOW_FILTER_KEYS)[number]

/** A filter as text, such as `verdict` `deny`. */
export interface FilterText {
  readonly key: FlowFilterKey
  /** True if flows with this value are left out. */
  readonly not: boolean
  readonly value: string
}

export interface FlowFilter {
  readonly accepts: (facts: FlowFacts) => boolean
  /** The names of endpoints in the filter, which must exist. */
  readonly endpoints: readonly string[]
}

/** Accepts every flow. */
export const EVERY_FLOW: FlowFilter = { accepts: () => true, endpoints: [] }

type Test = (facts: FlowFacts) => boolean

const PACKETS: readonly FlowKind[] = ['drop', 'audit']
const EVENTS: readonly FlowKind[] = ['policy-lost', 'expired-use']
const DNS = FLOW_KINDS.filter((kind) => !PACKETS.includes(kind) && !EVENTS.includes(kind))

const DNS_WORD = 'dns'

/** Returns the filters among the parameters, in their order. The other parameters are left to the caller. */
export function filterTexts(query: URLSearchParams): readonly FilterText[] {
  return [...query].flatMap(([name, value]) => {
    const not = name.startsWith('not-')
    const word = not ? name.slice(4) : name
    const key = FLOW_FILTER_KEYS.find((each) => each === word)
    return key === undefined ? [] : [{ key, not, value }]
  })
}

/** The names of all parameters that are filters. */
export const FILTER_PARAMETERS: readonly string[] = FLOW_FILTER_KEYS.flatMap((key) => [
  key,
  `not-${key}`,
])

export function readFlowFilter(texts: readonly FilterText[]): Parsed<FlowFilter> {
  if (texts.length === 0) return { kind: 'ok', value: EVERY_FLOW }
  const groups: Test[] = []
  for (const key of FLOW_FILTER_KEYS) {
    const [wanted, unwanted] = [testsOf(texts, key, false), testsOf(texts, key, true)]
    if (typeof wanted === 'string') return bad(wanted)
    if (typeof unwanted === 'string') return bad(unwanted)
    if (wanted.length > 0) groups.push((facts) => wanted.some((test) => test(facts)))
    if (unwanted.length > 0) groups.push((facts) => !unwanted.some((test) => test(facts)))
  }
  const never = neverReason(texts)
  if (never !== undefined) return bad(never)
  const kinds = new Set(kindsLeft(texts))
  const accepts = (facts: FlowFacts): boolean =>
    kinds.has(facts.kind) && groups.every((test) => test(facts))
  const endpoints = texts.filter(({ key }) => key === 'endpoint').map(({ value }) => value)
  return { kind: 'ok', value: { accepts, endpoints } }
}

/** Returns the tests of one filter, or the fault of a value as text. */
function testsOf(
  texts: readonly FilterText[],
  wanted: FlowFilterKey,
  isNot: boolean,
): readonly Test[] | string {
  const tests: Test[] = []
  for (const { key, not, value } of texts) {
    if (key !== wanted || not !== isNot) continue
    const test = testOf(key, value)
    if (typeof test === 'string') return `${not ? 'not-' : ''}${key}: ${test}`
    tests.push(test)
  }
  return tests
}

/** Returns the test of one value. If the value is wrong, returns the fault as text. */
function testOf(key: FlowFilterKey, value: string): Test | string {
  switch (key) {
    case 'endpoint':
      return ({ endpoint }) => endpoint === value
    case 'name': {
      const filter = nameFilter(value)
      return typeof filter === 'string' ? filter : (facts) => facts.hasName(filter)
    }
    case 'address': {
      const parsed = parseMaskedPrefix(value)
      if (parsed.kind === 'bad') return parsed.reason
      return (facts) => facts.isInside(parsed.prefix)
    }
    case 'port':
      return portTest(value)
    case 'protocol':
      return protocolTest(value)
    case 'verdict': {
      const found = `found ${JSON.stringify(value)}`
      if (FLOW_FILTERS.includes(value)) return ({ kind }) => isVerdict(kind, value)
      const meant = nearest(value, FLOW_FILTERS)
      const hint = meant === undefined ? '' : `; did you mean ${meant}?`
      return `${found}, expected ${FLOW_FILTERS.join(', ')}${hint}`
    }
  }
}

/** Returns the filter of a pattern, or of a name with octets that are written `\DDD`. If the text is neither, returns the fault. */
function nameFilter(text: string): NameFilter | string {
  if (text.includes('\\') && !text.includes('*')) {
    const name = parseName(text)
    return name.kind === 'bad' ? name.reason : oneNameFilter(name.name)
  }
  const parsed = parseMatchPattern(text)
  return parsed.kind === 'bad' ? parsed.reason : nameFilterOf(parsed.pattern)
}

function portTest(value: string): Test | string {
  const [low, high = low] = value
    .split('-')
    .map((text) => (/^\d{1,5}$/.test(text) ? Number(text) : -1))
  const isRange = /^\d+(-\d+)?$/.test(value)
  if (
    low === undefined ||
    high === undefined ||
    !isRange ||
    low < 0 ||
    high < low ||
    high > 65_535
  ) {
    return `found ${JSON.stringify(value)}, expected a port such as 443, or a range such as 8000-8100`
  }
  return ({ kind, port }) => PACKETS.includes(kind) && port >= low && port <= high
}

function protocolTest(value: string): Test | string {
  const word = value.toLowerCase()
  if (word === DNS_WORD) return ({ kind }) => DNS.includes(kind)
  const number = parseProtocol(word) ?? (/^\d{1,3}$/.test(word) ? Number(word) : -1)
  if (number < 1 || number > 255) {
    return `found ${JSON.stringify(value)}, expected icmp, tcp, udp, icmpv6, sctp, a number from 1 to 255, or dns for DNS decisions`
  }
  return ({ kind, protocol }) => PACKETS.includes(kind) && protocol === number
}

function isVerdict(kind: FlowKind, value: string): boolean {
  return value === kind || value === verdictOf(kind)
}

/** The kinds of flows that have the field of a filter. */
function kindsWith({ key, value }: FilterText): readonly FlowKind[] {
  switch (key) {
    case 'verdict':
      return FLOW_KINDS.filter((kind) => isVerdict(kind, value))
    case 'endpoint':
      return FLOW_KINDS.filter((kind) => kind !== 'unknown-client')
    case 'name':
    case 'address':
      return FLOW_KINDS.filter((kind) => kind !== 'policy-lost')
    case 'port':
      return PACKETS
    case 'protocol':
      return value.toLowerCase() === DNS_WORD ? DNS : PACKETS
  }
}

function kindsOf(texts: readonly FilterText[], key: FlowFilterKey): readonly FlowKind[] {
  const wanted = texts.filter((each) => each.key === key && !each.not)
  return wanted.length === 0 ? FLOW_KINDS : wanted.flatMap(kindsWith)
}

/** The kinds of flows that the verdicts and the fields of all filters leave. */
function kindsLeft(texts: readonly FilterText[]): readonly FlowKind[] {
  const out = texts.filter(({ key, not }) => not && key === 'verdict').flatMap(kindsWith)
  const lists = FLOW_FILTER_KEYS.map((key) => kindsOf(texts, key))
  return FLOW_KINDS.filter(
    (kind) => !out.includes(kind) && lists.every((list) => list.includes(kind)),
  )
}

/** Returns why no flow can match. Undefined if a flow can match. */
function neverReason(texts: readonly FilterText[]): string | undefined {
  for (const { key, not, value } of texts) {
    const isTwice = texts.some(
      (each) => each.key === key && each.not !== not && each.value === value,
    )
    const others = texts.filter((each) => each.key === key && !each.not)
    if (!not && isTwice && others.length === 1) {
      return `no flow can match: ${key} ${value} is wanted and left out at once`
    }
  }
  if (kindsLeft(texts).length > 0) return undefined
  const verdicts = texts.filter(({ key }) => key === 'verdict')
  if (kindsLeft(verdicts).length === 0)
    return 'no flow can match: the verdicts leave no kind of flow'
  for (const key of ['port', 'protocol', 'name', 'address', 'endpoint'] as const) {
    const own = texts.filter((each) => each.key === key && !each.not)
    const rest = texts.filter((each) => each.key !== key)
    if (own.length === 0 || kindsLeft(rest).length === 0) continue
    const values = own.map(({ value }) => value).join(', ')
    const having = [...new Set(own.flatMap(kindsWith))].join(', ')
    return `no flow can match: only flows of kind ${having} have ${key} ${values}, and the other filters leave ${kindsLeft(rest).join(', ')}`
  }
  return 'no flow can match: no kind of flow has all these fields'
}

function bad(reason: string): { readonly kind: 'bad'; readonly reason: string } {
  return { kind: 'bad', reason }
}
