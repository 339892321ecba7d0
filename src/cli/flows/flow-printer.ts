// Prints flows in the format of `-o`: `compact` is a line for people, `wide` and `--columns` are columns, `json` is one JSON object a line,
// and `yaml` is one YAML document for each flow. Only the formats for people have colours, relative times and folded flows, and only on a
// terminal.

import { systemClock } from '../../core/clock.ts'
import type { CommandOutput, ParsedArguments } from '../command.ts'
import { relativeTime } from '../relative-time.ts'
import { styleOf } from '../style.ts'
import { formatColumns, formatTitles, readColumns } from './flow-columns.ts'
import type { FlowFields } from './flow-fields.ts'
import { formatFlow } from './flow-text.ts'

const TIMES = ['relative', 'clock', 'absolute'] as const
type TimeForm = (typeof TIMES)[number]

/** The width of a relative time, such as `59m ago`. */
const RELATIVE_WIDTH = 7
/** Where the time of the day is in an RFC 3339 text. */
const CLOCK_AT = 11
const CLOCK_END = 19

export interface FlowPrinter {
  /** True for a format for people. */
  readonly isText: boolean
  /** True if equal flows are to be folded into one. */
  readonly isFolded: boolean
  readonly print: (flow: FlowFields) => void
}

/** Returns the printer. If an option is wrong, returns the fault as text. */
export async function flowPrinter(
  read: ParsedArguments,
  output: CommandOutput,
): Promise<FlowPrinter | string> {
  const { texts } = read
  const format = texts.get('output') ?? 'compact'
  const isData = format === 'json' || format === 'yaml'
  const stray = ['columns', 'time', 'color'].find((name) => isData && texts.has(name))
  if (stray !== undefined) return `--${stray} has no effect with -o ${format}`
  const style = styleOf(read, output)
  if (typeof style === 'string') return style
  const time = timeForm(read, output)
  if (typeof time !== 'string') return time.fault
  const columns = readColumns(texts.get('columns'))
  if (typeof columns === 'string') return columns
  if (format === 'json') return data(output, (flow) => `${JSON.stringify(flow)}\n`)
  if (format === 'yaml') {
    const { toYaml } = await import('../../documents/write-yaml.ts')
    return data(output, (flow) => `---\n${toYaml(flow)}`)
  }
  const look = { style, time: (text: string) => formatTime(text, time) }
  const isFolded = output.terminal !== undefined && !read.flags.has('no-fold')
  if (format !== 'wide' && !texts.has('columns')) {
    return { isText: true, isFolded, print: (flow) => output.stdout(`${formatFlow(flow, look)}\n`) }
  }
  let titles = `${style(formatTitles(columns), 'bold')}\n`
  const print = (flow: FlowFields): void => {
    output.stdout(`${titles}${formatColumns(columns, flow, look)}\n`)
    titles = ''
  }
  return { isText: true, isFolded, print }
}

function data(output: CommandOutput, format: (flow: FlowFields) => string): FlowPrinter {
  return { isText: false, isFolded: false, print: (flow) => output.stdout(format(flow)) }
}

/** By default times are relative on a terminal. A line that stays while new lines follow has the time of the day. */
function timeForm(
  { texts, flags }: ParsedArguments,
  { terminal }: CommandOutput,
): TimeForm | { readonly fault: string } {
  const given = texts.get('time')
  if (given === undefined) {
    return terminal === undefined ? 'absolute' : flags.has('follow') ? 'clock' : 'relative'
  }
  const known = TIMES.find((each) => each === given)
  return known ?? { fault: `--time: found ${JSON.stringify(given)}, expected ${TIMES.join(', ')}` }
}

function formatTime(text: string, form: TimeForm): string {
  if (form === 'absolute') return text
  if (form === 'clock') return text.slice(CLOCK_AT, CLOCK_END)
  return relativeTime(text, systemClock.wall()).padStart(RELATIVE_WIDTH)
}
