// Commands that run the daemon or ask it. What they do is loaded when they are called.

import type { ParsedCommand } from '../command.ts'
import { DAEMON_OPTIONS, flag, json, list, text } from './options.ts'

const DAEMON_CODES = '3 no daemon, or none that answers.'

export const RUN: ParsedCommand = {
  name: 'run',
  summary: 'run the daemon; --take-over continues with what the running one has',
  synopsis: ['run [--take-over]'],
  docs: 'docs/operations.md',
  about: `Runs the daemon in the foreground until SIGTERM or SIGINT; then it answers what is in flight, and the kernel goes on
enforcing. SIGHUP reads policies and endpoints again. Logs go to stderr.`,
  options: {
    'take-over': flag(
      'continues with listeners, connections and state of the running daemon, which then ends',
    ),
    config: text(
      'FILE',
      `configuration; default: $NAMEGATE_CONFIG, else config/namegate.yaml, else
/etc/namegate/namegate.yaml, else the built-in defaults`,
    ),
  },
  exitCodes: `0 stopped as asked, or taken over; 2 invalid config, policy or endpoints; 3 could not start (port, privilege,
kernel) or take over: then the running daemon continues.`,
  examples: ['namegate run', 'namegate run --config /etc/namegate/namegate.yaml'],
  run: async (read) => await (await import('../commands/run.ts')).runRun(read),
}

export const STATUS: ParsedCommand = {
  name: 'status',
  summary: 'health, revisions, mode, limits near their bound',
  synopsis: ['status [--ready]'],
  about: `State of the running daemon: health, versions, revisions of policy, upstreams, mode, bounds that are nearly reached
or were hit, files with faults.`,
  options: {
    ready: flag('exit code 1 while it is not ready'),
    output: json('one JSON object on stdout'),
    ...DAEMON_OPTIONS,
  },
  exitCodes: `0 a daemon answers (with --ready: and it is ready), 1 not ready, 2 wrong use, ${DAEMON_CODES}`,
  examples: ['namegate status', "status --ready >/dev/null || echo 'not ready'"],
  run: async (read, output) =>
    await (await import('../commands/status.ts')).runStatus(read, output),
}

export const GET: ParsedCommand = {
  name: 'get',
  summary: 'tables from a running daemon',
  synopsis: ['get endpoints|policies|selectors|names|ipcache|identities|resources|datapath'],
  words: 'endpoints policies selectors names ipcache identities resources datapath'.split(' '),
  about: `endpoints   workloads that policy applies to, and whether anything fences them
policies    policies, the state of their files, and which of their names were never asked
selectors   what policies select by, and the identities that each selects now
names       names that answers taught, with addresses and how long they hold
ipcache     prefixes with identity, labels and their owners
identities  numbers in use for label sets
resources   external resources
datapath    entries that are enforced now, read back from where they are enforced`,
  options: { output: json('one JSON array on stdout'), ...DAEMON_OPTIONS },
  exitCodes: `0 ok, 2 wrong use, ${DAEMON_CODES}`,
  examples: [
    'namegate get endpoints',
    "namegate get ipcache -o json | jq '.[] | select(.identity == 16777217) | .prefix'",
  ],
  run: async (read, output) => await (await import('../commands/get.ts')).runGet(read, output),
}

export const FLOWS: ParsedCommand = {
  name: 'flows',
  summary: 'DNS decisions and datapath drops, and those kept on disk',
  synopsis: ['flows [--follow] [--kept] [--since DURATION] [--verdict VERDICT] [--last N]'],
  about: `DNS decisions, packets that were dropped or would have been, and events, oldest first: those kept on disk, then the last 65,536
one by one. On disk repetitions are one flow with a count and the time of the last.`,
  options: {
    follow: flag('continues with what comes; without those on disk unless --kept is given', 'f'),
    kept: flag('all those kept on disk, and without --follow nothing else'),
    since: text('DURATION', 'only what was seen in this time, such as 10m, 24h, 7d'),
    verdict: text(
      'VERDICT',
      'only those: allow, deny, audit, error, event; or one kind: answered, denied, drop ...',
    ),
    last: text('N', 'only the last N of the 65,536'),
    output: json('one JSON object a line'),
    ...DAEMON_OPTIONS,
  },
  exitCodes: `0 ok, 2 wrong use, ${DAEMON_CODES}`,
  examples: [
    'namegate flows --follow --verdict deny',
    'namegate flows --kept --since 24h --verdict audit',
    `namegate flows -o json | jq -r 'select(.kind == "denied") | .name' | sort | uniq -c`,
  ],
  run: async (read, output) => await (await import('../commands/flows.ts')).runFlows(read, output),
}

export const ASK: ParsedCommand = {
  name: 'ask',
  summary:
    'a query through the proxy, from this host or as an endpoint would ask, shown with the decision',
  synopsis: ['ask NAME [TYPE] [--as ENDPOINT] [--server ADDRESS:PORT] [--tcp]'],
  about: `Asks a name through the proxy, from this host, and shows the answer and the decision. TYPE is A by default. NAME
may hold \\DDD for odd octets.`,
  options: {
    server: text('A:P', "ask there; default: the daemon's first listener"),
    tcp: flag('over TCP'),
    as: text(
      'ENDPOINT',
      `as that endpoint would ask: the daemon judges, forwards and learns as if the query came from it;
--server is then the server that it asks (upstreams.original-destination)`,
    ),
    output: json('one JSON object on stdout'),
    ...DAEMON_OPTIONS,
  },
  exitCodes: '0 answered, 1 denied or failed, 2 wrong use, 3 no daemon or no answer.',
  examples: [
    'namegate ask www.example.com',
    'namegate ask example.com AAAA --tcp --server 127.0.0.1:5300',
    'namegate ask www.example.com --as shop-1',
  ],
  run: async (read, output) => await (await import('../commands/ask.ts')).runAsk(read, output),
}

export const AUDIT: ParsedCommand = {
  name: 'audit',
  summary: 'report instead of drop; survives restarts, until reset',
  synopsis: ['audit on|off|reset --node | --endpoint NAME | --selector KEY=VALUE,...'],
  words: ['on', 'off', 'reset'],
  about: `In audit, what policy denies passes and is counted and reported ('namegate flows --verdict audit'). The setting holds
until it is changed, also over restarts, and wins over config and endpoints file; reset takes it back, so that these
decide again. A policy is audited by its annotation namegate.io/audit: "true". 'get endpoints' says what holds and why.`,
  options: {
    node: flag('every endpoint of the node, also those that come later'),
    endpoint: text('NAME', 'one endpoint'),
    selector: text('...', 'every endpoint with these labels, also those that come later'),
    all: flag('with reset: everything that was ever set'),
    output: json('what was set, as one JSON object on stdout'),
    ...DAEMON_OPTIONS,
  },
  exitCodes: `0 ok, 2 wrong use or no such endpoint, 3 no daemon, or none that answers, or in force but not
kept: a restart would take it back.`,
  examples: [
    'namegate audit on --endpoint shop-1',
    'namegate audit off --selector app=shop,k8s:io.kubernetes.pod.namespace=prod',
    'namegate audit reset --all',
  ],
  run: async (read, output) => await (await import('../commands/audit.ts')).runAudit(read, output),
}

export const RESOURCE: ParsedCommand = {
  name: 'resource',
  summary: 'labels for addresses outside, at run time',
  synopsis: [
    'resource set NAME --address ADDRESS... [--label KEY=VALUE...] [--port NAME=PORT/PROTOCOL...] [--ttl TIME]',
    'resource remove NAME',
  ],
  words: ['set', 'remove'],
  docs: 'docs/resources.md',
  about: `An external resource is labels for addresses or prefixes with no endpoint behind them: policies reach it by toEndpoints
and toEntities. The command ends when the datapath enforces it. It stays over restarts, until it is removed or its
time is over; setting it again begins its time anew. Resources that a file has are changed there.`,
  options: {
    address: list('...', 'an address or prefix; may be repeated'),
    label: list('...', 'a label; may be repeated'),
    port: list(
      '...',
      'a name that policies may use for a port, such as web=8080/TCP; may be repeated',
    ),
    ttl: text('TIME', 'for so long, such as 30s or 12h; without it until it is removed'),
    output: json('what was done, as one JSON object on stdout'),
    ...DAEMON_OPTIONS,
  },
  exitCodes:
    '0 ok, 1 remove: there is none of the name, 2 wrong use or invalid, 3 no daemon, or it cannot be done.',
  examples: [
    'namegate resource set billing-db --address 192.0.2.10 --label app=billing-db --label k8s:team=billing',
    'namegate resource set build-7 --address 2001:db8:7::/64 --label app=build --ttl 2h',
    'namegate resource remove billing-db',
  ],
  run: async (read, output) =>
    await (await import('../commands/resource.ts')).runResource(read, output),
}
