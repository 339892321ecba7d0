// `runTop` runs `namegate top`. The command shows what was asked and refused most in a recent time, and the upstreams. The daemon counts the
// flows of its memory; the command asks again at every interval, and draws the result in the same place of the terminal.

import type { Status, Top } from '../../client/api-types.ts'
import { DURATION_FORM, parseDuration } from '../../core/quantity.ts'
import type { Client } from '../../client/client.ts'
import { openClient } from '../client.ts'
import { EXIT_OK, toJson, type CommandOutput, type ParsedArguments } from '../command.ts'
import type { PartOf } from '../fields.ts'
import { styleOf } from '../style.ts'
import { showOnScreen } from '../top/screen.ts'
import { FIXED_LINES, formatTop } from '../top/top-text.ts'

const INTERVAL_MS = 2000
const INTERVAL_MS_MIN = 100
/** How many rows each list has where no terminal limits them. */
const ROWS = 10
const ROWS_MAX = 1000
const LISTS = 4
const WIDTH_PIPED = 200

export async function runTop(read: ParsedArguments, output: CommandOutput): Promise<number> {
  if (read.positionals.length > 0) return read.wrong('top takes no argument')
  const { texts, flags } = read
  const interval = parseDuration(texts.get('interval') ?? `${INTERVAL_MS}ms`)
  if (interval === undefined || interval < INTERVAL_MS_MIN) {
    return read.wrong(`--interval: expected at least ${INTERVAL_MS_MIN}ms, as ${DURATION_FORM}`)
  }
  const window = texts.get('window') ?? '60s'
  if ((parseDuration(window) ?? 0) === 0) return read.wrong(`--window: expected ${DURATION_FORM}`)
  const given = texts.get('rows')
  const rows = given === undefined ? undefined : /^\d{1,4}$/.test(given) ? Number(given) : 0
  if (rows !== undefined && (rows < 1 || rows > ROWS_MAX)) {
    const found = JSON.stringify(given)
    return read.wrong(`--rows: found ${found}, expected a number from 1 to ${ROWS_MAX}`)
  }
  const style = styleOf(read, output)
  if (typeof style === 'string') return read.wrong(style)
  const client = await openClient(read)
  const { terminal } = output
  if (texts.has('output')) {
    const { top, status } = await ask(client, window, rows ?? ROWS)
    output.stdout(toJson({ ...top, upstreams: status.upstreams }))
    return EXIT_OK
  }
  const draw = async (width: number, height: number): Promise<readonly string[]> => {
    const most = rows ?? Math.max(1, Math.floor((height - FIXED_LINES - LISTS) / LISTS))
    return formatTop({ ...(await ask(client, window, most)), width, rows: most, style })
  }
  if (terminal === undefined || flags.has('once')) {
    const lines = await draw(terminal?.columns ?? WIDTH_PIPED, FIXED_LINES + LISTS * (ROWS + 1))
    output.stdout(lines.map((line) => `${line}\n`).join(''))
    return EXIT_OK
  }
  await showOnScreen(
    output,
    terminal,
    interval,
    async () => await draw(terminal.columns, terminal.rows),
  )
  return EXIT_OK
}

async function ask(
  client: Client,
  window: string,
  rows: number,
): Promise<{ readonly top: PartOf<Top>; readonly status: PartOf<Status> }> {
  const [top, status] = await Promise.all([
    client.request('GET /v1/top', { query: { window, rows } }),
    client.request('GET /v1/status'),
  ])
  return { top: top.value, status: status.value }
}
