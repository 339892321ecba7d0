// This file defines `top`, `explain` and `page`, which show what a running daemon does and why.

import type { ParsedCommand } from '../command.ts'
import { COLOR, DAEMON_OPTIONS, flag, json, text } from './options.ts'

const DAEMON_CODES = '3 no daemon runs or it does not answer.'

export const TOP: ParsedCommand = {
  name: 'top',
  summary: 'show live what is asked and refused most, and slow upstreams',
  synopsis: ['top [--window TIME] [--interval TIME] [--rows N] [--once]'],
  docs: 'docs/operations.md',
  about: `Shows the names and endpoints with most flows in the last minute, equal refusals with their number and reason, and the
upstreams, slowest first. 'addresses of no endpoint' are clients that are no endpoint, and endpoints that are gone. On a terminal the text
is drawn again every two seconds until Ctrl-C. Without a terminal it is printed once.`,
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

export const EXPLAIN: ParsedCommand = {
  name: 'explain',
  summary: 'say if an endpoint of the daemon can ask a name or connect now, and why',
  synopsis: ['explain NAME[:P] [--as ENDPOINT] [--port P]', 'explain [--as ENDPOINT] QUESTION'],
  docs: 'docs/operations.md#explain',
  about: `Says if an endpoint of the running daemon can ask for NAME, or with a port connect to NAME, which can be an address, and why: the
rules, selectors and defaults that decide, and for a denial the rule that comes nearest to allowing it. The policy in force and the names that the endpoint
learned decide. 'policy explain' answers the same from files, without a daemon.

QUESTION is one of:
  --ask NAME [--protocol P] [--server A:PORT]   can the endpoint ask the server at A:PORT for NAME, over UDP (default) or TCP
  [--name NAME] [--address ADDRESS] --port P    can the endpoint connect to the addresses of NAME, or to ADDRESS; with
                                                both: to ADDRESS from an answer for NAME. P: 443/TCP, 53/UDP, 443, ICMP`,
  options: {
    as: text('ENDPOINT', 'the name of the endpoint; can be left out if there is one endpoint'),
    ask: text('NAME', 'see QUESTION'),
    server: text('A:PORT', 'see QUESTION'),
    protocol: text('P', 'see QUESTION'),
    name: text('NAME', 'see QUESTION'),
    address: text('ADDRESS', 'see QUESTION'),
    port: text('P', 'see QUESTION'),
    output: json('one JSON object on stdout'),
    ...DAEMON_OPTIONS,
  },
  exitCodes: `0 allowed, 1 denied, 2 wrong use or no such endpoint, ${DAEMON_CODES}`,
  examples: [
    'namegate explain www.example.com --as shop',
    'namegate explain www.example.com:443',
    'namegate explain --as shop --address 198.18.0.9 --port 443/TCP',
  ],
  run: async (read, output) =>
    await (await import('../commands/explain.ts')).runExplain(read, output),
}

export const PAGE: ParsedCommand = {
  name: 'page',
  summary: "serve the daemon's web page on a port of this host, until Ctrl-C",
  synopsis: ['page [--port N]'],
  docs: 'docs/page.md',
  about: `Serves the web page of the running daemon on 127.0.0.1, and prints its address and a token, which the page asks for once. The page
comes from the admin socket, so the daemon needs no admin.page, and can run in another network namespace. The page changes nothing, and
the admin API stays out of reach.`,
  options: {
    port: text('N', 'port on 127.0.0.1; 0 takes a free one; default 9466'),
    ...DAEMON_OPTIONS,
  },
  exitCodes: `0 ended by a signal, 2 wrong use, 3 the port is taken, no daemon runs, or it does not answer.`,
  examples: ['namegate page', 'ssh -L 9466:127.0.0.1:9466 root@node.example namegate page'],
  run: async (read, output) => await (await import('../commands/page.ts')).runPage(read, output),
}
