// This file defines the commands that watch or question a running daemon beside those of daemon.ts.

import type { ParsedCommand } from '../command.ts'
import { COLOR, DAEMON_OPTIONS, flag, json, text } from './options.ts'

const DAEMON_CODES = '3 no daemon runs or it does not answer.'

export const TOP: ParsedCommand = {
  name: 'top',
  summary: 'show live what is asked and refused most, and slow upstreams',
  synopsis: ['top [--window TIME] [--interval TIME] [--rows N] [--once]'],
  docs: 'docs/operations.md',
  about: `Shows the names and endpoints with most flows in the last minute, equal refusals with their number and reason, and the
upstreams, slowest first. On a terminal the text is drawn again every two seconds until Ctrl-C. Without a terminal it is printed once.`,
  options: {
    window: text('TIME', 'count the flows of this time; default 60s'),
    interval: text('TIME', 'draw again after this time; default 2s'),
    rows: text('N', 'rows of each list; default: as many as fit, without a terminal 10'),
    once: flag('print once and end'),
    color: COLOR,
    output: json('one JSON object on stdout, once'),
    ...DAEMON_OPTIONS,
  },
  exitCodes: `0 ok, 2 wrong use, ${DAEMON_CODES}`,
  examples: [
    'namegate top',
    "namegate top --window 10m -o json | jq '.refusals[] | {endpoint, what, count}'",
  ],
  run: async (read, output) => await (await import('../commands/top.ts')).runTop(read, output),
}
