// `runFlows` runs `namegate flows`. The command prints flows: the flows that are kept on disk, the flows in the daemon's memory, and new
// flows. The daemon filters its flows itself. On a terminal, equal flows are folded, and times are relative.

import type { FilterText, FlowFilter } from '../../admin/flows/flow-filter.ts'
import { nearest } from '../../core/did-you-mean.ts'
import { verdictLines } from '../../flows/record/flow-words.ts'
import { systemClock } from '../../core/clock.ts'
import { DURATION_FORM, parseDuration } from '../../core/quantity.ts'
import type { Client, RequestOptions } from '../../client/client.ts'
import { openClient } from '../client.ts'
import { EXIT_OK, type CommandOutput, type ParsedArguments } from '../command.ts'
import { textOf } from '../fields.ts'
import { faultNotes } from '../file-faults.ts'
import { allowOfFlow } from '../flows/allow-of-flow.ts'
import { FlowFold } from '../flows/flow-fold.ts'
import { filtersIn, toParameters, wordFault } from '../flows/flow-options.ts'
import { flowPrinter } from '../flows/flow-printer.ts'
import type { FlowFields } from '../flows/flow-fields.ts'

/** How many flows `--follow` starts with. */
const FOLLOW_LAST = '20'
/** How long equal flows are folded into one. A reader that follows sees the first at once, and the count after this time. */
const FOLD_MS = 60_000
const FOLD_FOLLOW_MS = 10_000
const TICK_MS = 1000

interface Wanted {
  readonly filter: FlowFilter | undefined
  /** Only flows from this time on are printed (RFC 3339). Empty means all flows. */
  readonly from: string
}

export async function runFlows(read: ParsedArguments, output: CommandOutput): Promise<number> {
  const [word] = read.positionals
  if (word !== undefined) return read.wrong(wordFault(word, read.given))
  const { flags, texts } = read
  const wrong = wrongOption(read)
  if (wrong !== undefined) return read.wrong(wrong)
  const filters = filtersIn(read.given)
  if (typeof filters === 'string') return read.wrong(filters)
  const filter = await readFilters(filters)
  if (typeof filter === 'string') return read.wrong(filter)
  const printer = await flowPrinter(read, output)
  if (typeof printer === 'string') return read.wrong(printer)
  const client = await openClient(read)
  const wanted = { filter, from: sinceTime(texts.get('since')) }
  const [kept, follow] = [flags.has('kept'), flags.has('follow')]
  const fold = printer.isFolded
    ? new FlowFold({
        print: printer.print,
        windowMs: follow ? FOLD_FOLLOW_MS : FOLD_MS,
        isEarly: follow,
      })
    : undefined
  let isAny = false
  const print = (flow: FlowFields): void => {
    isAny = true
    if (fold === undefined) printer.print(flow)
    else fold.add(flow)
  }
  const ticking = systemClock.every(TICK_MS, () => follow && fold?.passTime(systemClock.wall()))
  try {
    const query = ringQuery(read, filters)
    if (filter !== undefined && filter.endpoints.length > 0 && (!kept || follow)) {
      await checkFilters(client, query)
    }
    if (kept && !follow) {
      const last = texts.get('last')
      const rows = new LastRows(last === undefined ? Infinity : Number(last), print)
      await printKept(client, true, wanted, (flow) => rows.add(flow))
      rows.end()
      if (!isAny && printer.isText) output.stderr(noFlows(read))
      return EXIT_OK
    }
    if (kept || (!follow && !texts.has('last'))) await printKept(client, false, wanted, print)
    const noteFaults = async (): Promise<void> => {
      if (printer.isText) output.stderr(await faultNotes(client))
    }
    if (follow) await noteFaults()
    const isRefused = await printRing(client, query, print)
    fold?.end()
    if (!isAny && printer.isText) output.stderr(noFlows(read))
    if (isRefused) await noteFaults()
    return EXIT_OK
  } finally {
    ticking.cancel()
    fold?.end()
  }
}

/** Prints the last flows of those that it gets, at the end. Without a bound, it prints each flow at once. */
class LastRows {
  readonly #rows: FlowFields[] = []
  readonly #most: number
  readonly #print: (flow: FlowFields) => void

  constructor(most: number, print: (flow: FlowFields) => void) {
    this.#most = most
    this.#print = print
  }

  add(flow: FlowFields): void {
    if (this.#most === Infinity) return this.#print(flow)
    this.#rows.push(flow)
    if (this.#rows.length > this.#most) this.#rows.shift()
  }

  end(): void {
    for (const flow of this.#rows) this.#print(flow)
  }
}

/** Returns a line that says that there is no flow, and when one comes. */
function noFlows({ given }: ParsedArguments): string {
  const isFiltered = given.some(({ name }) => !UNFILTERED.has(name))
  return isFiltered
    ? 'namegate: no recorded flow matches these options\n'
    : 'namegate: no flow is recorded yet: one comes with each DNS query of an endpoint, and with each dropped packet\n'
}

/** Options that leave out no flow. */
const UNFILTERED: ReadonlySet<string> = new Set(
  'socket config output color time columns no-fold kept follow last'.split(' '),
)

/** Returns the first fault in the values of `--since` and `--last` as text, or undefined if both are good. */
function wrongOption({
  texts,
  flags,
}: Pick<ParsedArguments, 'texts' | 'flags'>): string | undefined {
  const [since, last] = ['since', 'last'].map((name) => texts.get(name))
  if (since !== undefined && parseDuration(since) === undefined) {
    return `--since: found ${JSON.stringify(since)}, expected ${DURATION_FORM}`
  }
  const isZero = Number(last) === 0 && !flags.has('follow')
  if (last !== undefined && (isZero || !/^\d{1,9}$/.test(last))) {
    const found = JSON.stringify(last)
    return `--last: found ${found}, expected a number from 1 to 999999999, or 0 with --follow for new flows alone`
  }
  return undefined
}

/** Returns the filter, or undefined without filters. If a filter is wrong or can match no flow, returns the fault as text. */
async function readFilters(
  filters: readonly FilterText[],
): Promise<FlowFilter | string | undefined> {
  if (filters.length === 0) return undefined
  const [{ readFlowFilter }, { FLOW_FILTERS }] = await Promise.all([
    import('../../admin/flows/flow-filter.ts'),
    import('../../admin/views/flows.ts'),
  ])
  const wrong = filters.find(({ key, value }) => key === 'verdict' && !FLOW_FILTERS.includes(value))
  if (wrong !== undefined) return wrongVerdict(wrong, FLOW_FILTERS)
  const found = readFlowFilter(filters)
  return found.kind === 'ok' ? found.value : found.reason
}

/** Returns the fault of a word that is no verdict and no kind, with all words and their meaning. */
function wrongVerdict({ not, value }: FilterText, known: readonly string[]): string {
  if (value.startsWith('!') && known.includes(value.slice(1))) {
    const positive = `--verdict ${value.slice(1)}`
    return `--verdict: found ${JSON.stringify(value)}: write ${not ? '' : '--not '}${positive}`
  }
  const meant = nearest(value, known)
  const hint = meant === undefined ? '.' : `; did you mean ${meant}?`
  const found = `${not ? '--not ' : ''}--verdict: found ${JSON.stringify(value)}`
  return `${found}${hint} The words are:\n${verdictLines()}`
}

function sinceTime(since: string | undefined): string {
  const age = since === undefined ? undefined : parseDuration(since)
  return age === undefined ? '' : new Date(systemClock.wall() - age).toISOString()
}

type FlowParameters = NonNullable<RequestOptions<'GET /v1/flows'>['query']>

/** Returns the parameters of `/v1/flows`. */
function ringQuery(
  { texts, flags }: ParsedArguments,
  filters: readonly FilterText[],
): FlowParameters {
  const given = toParameters(filters)
  const keys = [...new Set(given.keys())]
  const lists = Object.fromEntries(keys.map((key) => [key, given.getAll(key)]))
  const since = texts.get('since')
  const follow = flags.has('follow')
  const begin = follow && since === undefined ? FOLLOW_LAST : undefined
  const last = texts.get('last') ?? begin
  return {
    ...lists,
    ...(since === undefined ? {} : { since }),
    ...(follow ? { follow: '1' as const } : {}),
    ...(last === undefined ? {} : { last: Number(last) }),
  }
}

/** Asks the daemon about the filters. Throws UsageError if the daemon refuses them, such as for an endpoint that does not exist. */
async function checkFilters(client: Client, given: FlowParameters): Promise<void> {
  const { follow: _, ...rest } = given
  const query = { ...rest, last: 0 }
  for await (const _flow of client.rows('GET /v1/flows', { query })) continue
}

/**
 * Prints the flows in the daemon's memory. Returns true if a line of an allow-list would allow one of them. Packets are reported later than
 * queries. So the flows are sorted by time, except for a reader that follows.
 */
async function printRing(
  client: Client,
  query: FlowParameters,
  print: (flow: FlowFields) => void,
): Promise<boolean> {
  const { KeptOrder } = await import('../flows/kept-order.ts')
  const order = query.follow === undefined ? new KeptOrder(print) : undefined
  let isRefused = false
  for await (const row of client.rows('GET /v1/flows', { query })) {
    const flow: FlowFields = row
    isRefused ||= allowOfFlow(flow) !== undefined
    if (order === undefined) print(flow)
    else order.add(flow)
  }
  order?.end()
  return isRefused
}

async function printKept(
  client: Client,
  all: boolean,
  { filter, from }: Wanted,
  print: (flow: FlowFields) => void,
): Promise<void> {
  const [{ KeptFacts }, { KeptOrder }] = await Promise.all([
    import('../flows/kept-facts.ts'),
    import('../flows/kept-order.ts'),
  ])
  const order = new KeptOrder(print)
  const query = all ? {} : ({ older: '1' } as const)
  for await (const row of client.rows('GET /v1/flows/kept', { query })) {
    const flow: FlowFields = row
    if (textOf(flow.last ?? flow.time) < from) continue
    const facts = filter === undefined ? undefined : KeptFacts.of(flow)
    if (filter === undefined || (facts !== undefined && filter.accepts(facts))) order.add(flow)
  }
  order.end()
}
