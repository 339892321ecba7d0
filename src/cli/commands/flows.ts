// `runFlows` runs `namegate flows`. The command prints flows, one per line: the flows that are kept on disk, and new flows.

import type {
  DnsFlowShape,
  ExpiredUseShape,
  FlowRuleShape,
  PacketFlowShape,
  PolicyLostShape,
} from '../../admin/flow-shapes.ts'
import { openClient } from '../client.ts'
import { DURATION_FORM, parseDuration } from '../../core/quantity.ts'
import { systemClock } from '../../core/clock.ts'
import { EXIT_OK, type CommandOutput, type ParsedArguments } from '../command.ts'
import { fieldsOf, listOf, rowsIn, textOf, type PartOf } from '../fields.ts'
import { cleanCell } from '../table.ts'

/** A flow of any kind. Flows that are kept on disk also have `count` and `last`. */
export type FlowFields = PartOf<DnsFlowShape> &
  PartOf<PacketFlowShape> &
  PartOf<PolicyLostShape> &
  PartOf<ExpiredUseShape> & { readonly count?: unknown; readonly last?: unknown }

export async function runFlows(read: ParsedArguments, output: CommandOutput): Promise<number> {
  if (read.positionals.length > 0) return read.wrong('flows takes no argument')
  const { flags, texts } = read
  const wrong = await wrongOption(texts)
  if (wrong !== undefined) return read.wrong(wrong)
  const since = texts.get('since')
  const age = since === undefined ? undefined : parseDuration(since)
  const verdict = texts.get('verdict')
  const wanted: Wanted = {
    verdict,
    from: age === undefined ? '' : new Date(systemClock.wall() - age).toISOString(),
  }
  const print = (flow: FlowFields): void => {
    if (!isWanted(flow, wanted)) return
    output.stdout(texts.has('output') ? `${JSON.stringify(flow)}\n` : `${formatFlow(flow)}\n`)
  }
  const client = await openClient(read)
  const [kept, follow] = [flags.has('kept'), flags.has('follow')]
  if (kept || (!follow && !texts.has('last'))) {
    const parts = await client.open(kept && !follow ? '/v1/flows/kept' : '/v1/flows/kept?older=1')
    for await (const flow of rowsIn(parts)) print(flow)
  }
  if (kept && !follow) return EXIT_OK
  const query = new URLSearchParams(follow ? { follow: '1' } : {})
  for (const name of ['verdict', 'last']) {
    const value = texts.get(name)
    if (value !== undefined) query.set(name, value)
  }
  const parts = await client.open(`/v1/flows?${query.toString()}`)
  for await (const flow of rowsIn(parts)) print(flow)
  return EXIT_OK
}

/** Returns the first fault in the values of options as text, or undefined if all are good. */
async function wrongOption(texts: ReadonlyMap<string, string>): Promise<string | undefined> {
  const [since, last, verdict] = ['since', 'last', 'verdict'].map((name) => texts.get(name))
  const wrong = (name: string, found: string, expected: string): string =>
    `--${name}: found ${JSON.stringify(found)}, expected ${expected}`
  if (since !== undefined && parseDuration(since) === undefined) {
    return wrong('since', since, DURATION_FORM)
  }
  if (last !== undefined && !/^\d{1,9}$/.test(last)) return wrong('last', last, 'a number')
  if (verdict === undefined) return undefined
  const { FLOW_FILTERS } = await import('../../admin/views/flows.ts')
  return FLOW_FILTERS.includes(verdict)
    ? undefined
    : wrong('verdict', verdict, FLOW_FILTERS.join(', '))
}

interface Wanted {
  readonly verdict: string | undefined
  /** Only flows from this time on are printed (RFC 3339). Empty means all flows. */
  readonly from: string
}

function isWanted(flow: FlowFields, { verdict, from }: Wanted): boolean {
  const last = textOf(flow.last ?? flow.time)
  return (
    last >= from && (verdict === undefined || flow.verdict === verdict || flow.kind === verdict)
  )
}

/** Returns a line such as `2026-01-02T03:04:05.678Z deny  shop         TCP 198.51.100.9:443 dropped: policy; identity 9 [...]`. */
export function formatFlow(flow: FlowFields): string {
  const head = [textOf(flow.time), textOf(flow.verdict).padEnd(5), textOf(flow.endpoint).padEnd(12)]
  return cleanCell([...head, detailsOf(flow) + repeated(flow)].join(' '))
}

/** Returns `, 12 times until 2026-01-02T03:04:05.678Z` for repetitions that are kept as one flow, else an empty text. */
function repeated({ count, last }: FlowFields): string {
  return typeof count === 'number' && count > 1 ? `, ${count} times until ${textOf(last)}` : ''
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
      const taught = flow.addresses === 1 ? '1 address' : `${textOf(flow.addresses)} addresses`
      return `${question(flow)} ${textOf(flow.rcode)}, ${textOf(flow.outcome)}, ${taught}`
    }
    default: {
      const why = typeof flow.reason === 'string' ? `: ${flow.reason}` : ''
      return `${question(flow)} ${textOf(flow.kind)}${why}${byWhom(flow)}, client ${textOf(flow.client)}`
    }
  }
}

function question(flow: FlowFields): string {
  return `${textOf(flow.type)} ${textOf(flow.name)}`
}

function packetDetails(flow: FlowFields): string {
  const peer = textOf(flow.peer)
  const to = peer.includes(':') ? `[${peer}]` : peer
  const what = flow.kind === 'drop' ? 'dropped' : 'would be dropped'
  const names = listOf(flow.names).map(textOf)
  const named = names.length === 0 ? '' : ` (${names.join(', ')})`
  const who = `identity ${textOf(flow.identity)} [${textOf(flow.labels)}]`
  return `${textOf(flow.protocol)} ${to}:${textOf(flow.port)}${named} ${what}: ${textOf(flow.reason)}${byWhom(flow)}; ${who}`
}

/** Returns ` by default/web (web.yaml:12)`: the rules that denied the packet or query, or would have denied it. */
function byWhom(flow: FlowFields): string {
  const rules = listOf(flow.rules).map((rule) => {
    const { policy, file, line }: PartOf<FlowRuleShape> = fieldsOf(rule)
    return `${textOf(policy)} (${textOf(file)}:${textOf(line)})`
  })
  return rules.length === 0 ? '' : ` by ${rules.join(', ')}`
}
