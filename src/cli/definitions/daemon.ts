// This file defines `run`, and commands that send requests to the daemon: `status`, `get`, `flows`, `ask`, `audit`, `resource` and
// `kubernetes`. The code of a command is loaded when the command is called.

import { verdictLines } from '../../flows/record/flow-words.ts'
import type { ParsedCommand } from '../command.ts'
import { COLOR, DAEMON_OPTIONS, flag, formats, json, list, text } from './options.ts'

const DAEMON_CODES = '3 no daemon runs or it does not answer.'

export const RUN: ParsedCommand = {
  name: 'run',
  summary: 'run the daemon; with --take-over, continue the work of the running daemon',
  synopsis: ['run [--take-over]'],
  docs: 'docs/operations.md',
  about: `Runs the daemon in the foreground until SIGTERM or SIGINT. The daemon then answers the queries in flight and ends; the kernel
continues to enforce. SIGHUP reads policies and endpoints again. The daemon logs to stderr.`,
  options: {
    'take-over': flag(
      'continue with listeners, connections and state of the running daemon, which then ends',
    ),
    config: text(
      'FILE',
      `configuration; default: $NAMEGATE_CONFIG, else config/namegate.yaml, else
/etc/namegate/namegate.yaml, else the built-in defaults`,
    ),
  },
  exitCodes: `0 stopped by a signal or taken over; 2 invalid config, policy or endpoints; 3 could not start (port, privilege,
kernel) or could not take over (the running daemon then continues).`,
  examples: ['namegate run', 'namegate run --config /etc/namegate/namegate.yaml'],
  run: async (read) => await (await import('../commands/run.ts')).runRun(read),
}

export const STATUS: ParsedCommand = {
  name: 'status',
  summary: 'print health, revisions, mode, and limits that are nearly reached',
  synopsis: ['status [--ready]'],
  about: `Prints the state of the running daemon: health, versions, revisions of policy, upstreams, mode, bounds that are nearly
reached or were hit, files with faults.`,
  options: {
    ready: flag('end with exit code 1 if the daemon is not ready'),
    color: COLOR,
    output: json('one JSON object on stdout'),
    ...DAEMON_OPTIONS,
  },
  exitCodes: `0 the daemon answers (with --ready: and is ready), 1 not ready, 2 wrong use, ${DAEMON_CODES}`,
  examples: ['namegate status', "namegate status --ready >/dev/null || echo 'not ready'"],
  run: async (read, output) =>
    await (await import('../commands/status.ts')).runStatus(read, output),
}

export const GET: ParsedCommand = {
  name: 'get',
  summary: 'print tables of a running daemon',
  synopsis: [
    'get endpoints|policies|selectors|names|ipcache|identities|resources|sources|datapath [--watch]',
    'get names|ipcache|identities [--endpoint NAME] [--name PATTERN] [--prefix PREFIX]',
  ],
  words: 'endpoints policies selectors names ipcache identities resources sources datapath'.split(
    ' ',
  ),
  about: `endpoints   workloads to which policy applies, and whether each is enforced
policies    policies, the state of their files, and their names that no client has asked
selectors   selectors of policies, and the identities that each selects
names       names learned from answers, with their addresses and how long these stay allowed
ipcache     prefixes, with identity, labels and owners; a row applies to its ENDPOINT, or to all
identities  identities in use, with their labels
resources   external resources
sources     files and collections of a cluster from which policies and endpoints come, with their ages
datapath    entries that are enforced at present, read back from the datapath`,
  options: {
    endpoint: text('NAME', 'only what this endpoint learned, and its own addresses'),
    name: text('PATTERN', 'only this name, or names that match the pattern, as in policies'),
    prefix: text('PREFIX', 'only addresses in this prefix, and prefixes that overlap it'),
    watch: flag('print the table again when it has changed, until Ctrl-C', 'w'),
    interval: text('TIME', 'with --watch: how often to look for changes; default 2s'),
    output: json('one JSON array on stdout'),
    ...DAEMON_OPTIONS,
  },
  exitCodes: `0 ok, 2 wrong use, ${DAEMON_CODES}`,
  examples: [
    'namegate get endpoints',
    "namegate get names --endpoint shop --name '**.example.com' --watch",
    "namegate get ipcache -o json | jq '.[] | select(.identity == 16777217) | .prefix'",
  ],
  run: async (read, output) => await (await import('../commands/get.ts')).runGet(read, output),
}

export const KUBERNETES: ParsedCommand = {
  name: 'kubernetes',
  summary: 'confirm the removal of many policies of a cluster, which namegate delays',
  synopsis: ['kubernetes accept'],
  words: ['accept'],
  docs: 'docs/kubernetes.md',
  about: `If a cluster loses many policies at once, for example because a CRD was deleted, the daemon keeps them in force for a while
(kubernetes.mass-removal). "namegate status" then warns. "namegate kubernetes accept" removes these policies now.`,
  options: { output: json('one JSON object on stdout'), ...DAEMON_OPTIONS },
  exitCodes: `0 ok, 2 wrong use, ${DAEMON_CODES}`,
  examples: ['namegate get sources', 'namegate kubernetes accept'],
  run: async (read, output) =>
    await (await import('../commands/kubernetes.ts')).runKubernetes(read, output),
}

export const FLOWS: ParsedCommand = {
  name: 'flows',
  summary: 'print DNS decisions and dropped packets, recent ones and those on disk',
  synopsis: ['flows [--follow] [--kept] [--since DURATION] [--last N] [[--not] FILTER VALUE]...'],
  about: `Prints flows, oldest first: DNS decisions, packets that were dropped or that audit allowed, and events. First come the flows
kept on disk, where equal flows are one line with a count and the time of the last. Then come the last 65,536 flows, one line each.

Filters are --endpoint, --name, --address, --port, --protocol and --verdict. Values of one filter are alternatives, and a flow must
match every filter. --not in front of a filter leaves out what the filter selects. A filter that no flow can match is an error.

On a terminal, equal flows within a minute are one line with a count, and times are relative.

VERDICT is a value of the JSON fields verdict or kind. A verdict stands for all kinds behind which it is named:
${verdictLines()}`,
  options: {
    follow: flag(
      'continue with new flows, after the last 20; print the flows on disk only with --kept',
      'f',
    ),
    kept: flag('print all flows kept on disk; without --follow, print no others'),
    since: text('DURATION', 'only flows of the last DURATION, such as 10m, 24h, 7d'),
    last: text(
      'N',
      'only the last N of the flows that match: of the 65,536 in memory, or with --kept of those on disk',
    ),
    endpoint: list('NAME', 'only flows of this endpoint'),
    name: list(
      'PATTERN',
      'only this name, or names that match the pattern, as in policies: *.x.test, **.x.test',
    ),
    address: list(
      'PREFIX',
      'only flows whose client or peer has this address or is in this prefix',
    ),
    port: list('PORT', 'only packets to this port, or to a range of ports such as 8000-8100'),
    protocol: list(
      'P',
      'only packets of tcp, udp, sctp, icmp, icmpv6 or a number; dns: DNS decisions',
    ),
    verdict: list('VERDICT', 'only flows of this verdict or kind, see VERDICT'),
    not: { ...flag('leave out what the next filter selects'), isRepeated: true },
    output: formats(
      ['json', 'yaml', 'wide', 'compact'],
      `json: one JSON object a line; yaml: one document a flow;
wide: columns; compact: a line a flow (default)`,
    ),
    columns: text(
      'A,B,...',
      `columns to print, such as time,endpoint,name,count; an unknown name prints the list`,
    ),
    time: text('FORM', 'relative (default on a terminal), clock (with --follow) or absolute'),
    color: COLOR,
    'no-fold': flag('print equal flows one by one on a terminal, too'),
    ...DAEMON_OPTIONS,
  },
  exitCodes: `0 ok, 2 wrong use, ${DAEMON_CODES}`,
  examples: [
    'namegate flows --follow --verdict deny',
    "namegate flows --endpoint shop --name '**.example.com' --not --verdict allow",
    'namegate flows --kept --since 24h --verdict audit',
    `namegate flows -o json | jq -r 'select(.kind == "denied") | .name' | sort | uniq -c`,
  ],
  run: async (read, output) => await (await import('../commands/flows.ts')).runFlows(read, output),
}

export const ASK: ParsedCommand = {
  name: 'ask',
  summary:
    'send a query through the proxy, from this host or as an endpoint, and print the decision',
  synopsis: ['ask NAME [TYPE] [--as ENDPOINT] [--server ADDRESS:PORT] [--tcp]'],
  about: `Sends a query for a name through the proxy, from this host, and prints the answer and the decision. TYPE is A by default.
In NAME, \\DDD is the octet with this decimal value.`,
  options: {
    server: text('A:P', "send the query there; default: the daemon's first listener"),
    tcp: flag('send the query over TCP; policy can allow a name over UDP alone, or over TCP alone'),
    as: text(
      'ENDPOINT',
      `the daemon judges, forwards and learns as if ENDPOINT had sent the query; --server is then the
server that ENDPOINT asks (upstreams.original-destination). Default: the only endpoint of a daemon
whose listeners take only intercepted queries`,
    ),
    output: json('one JSON object on stdout'),
    ...DAEMON_OPTIONS,
  },
  exitCodes: '0 answered, 1 denied or failed, 2 wrong use, 3 no daemon runs, or no answer came.',
  examples: [
    'namegate ask www.example.com',
    'namegate ask example.com AAAA --tcp --server 127.0.0.1:5300',
    'namegate ask www.example.com --as shop-1',
  ],
  run: async (read, output) => await (await import('../commands/ask.ts')).runAsk(read, output),
}

export const AUDIT: ParsedCommand = {
  name: 'audit',
  summary: 'allow and report what policy denies; the setting survives restarts',
  synopsis: ['audit on|off|reset --node | --endpoint NAME | --selector KEY=VALUE,...'],
  words: ['on', 'off', 'reset'],
  about: `In audit, packets and queries that policy denies are allowed, counted and reported ('namegate flows --verdict audit'). A setting
stays until it is changed, also over restarts, and wins over the config and the endpoints file. 'reset' removes the setting, so that
these two decide again. The annotation namegate.io/audit: "true" audits one policy. 'get endpoints' shows for each endpoint if it is
audited, and why.`,
  options: {
    node: flag('all endpoints of the node, including later ones'),
    endpoint: text('NAME', 'one endpoint'),
    selector: text('KEY=VALUE,...', 'all endpoints with these labels, including later ones'),
    all: flag('with reset: remove every setting'),
    output: json('the setting as one JSON object on stdout'),
    ...DAEMON_OPTIONS,
  },
  exitCodes: `0 ok, 2 wrong use or no such endpoint, 3 no daemon runs or it does not answer, or the setting is in
force but was not saved, so a restart undoes it.`,
  examples: [
    'namegate audit on --endpoint shop-1',
    'namegate audit off --selector app=shop,k8s:io.kubernetes.pod.namespace=prod',
    'namegate audit reset --all',
  ],
  run: async (read, output) => await (await import('../commands/audit.ts')).runAudit(read, output),
}

export const RESOURCE: ParsedCommand = {
  name: 'resource',
  summary: 'set or remove labels of addresses that no endpoint has, at run time',
  synopsis: [
    'resource set NAME --address ADDRESS... [--label KEY=VALUE...] [--port NAME=PORT/PROTOCOL...] [--ttl TIME]',
    'resource remove NAME',
  ],
  words: ['set', 'remove'],
  docs: 'docs/resources.md',
  about: `An external resource gives labels to addresses or prefixes that no endpoint has. Policies select a resource with toEndpoints and
toEntities. The command ends when the datapath enforces the change. A resource stays, also over restarts, until it is removed or its
--ttl ends; another 'set' starts the --ttl again. A resource that a file defines can be changed only in that file.`,
  options: {
    address: list('...', 'an address or prefix of the resource; can be repeated'),
    label: list('...', 'a label of the resource; can be repeated'),
    port: list(
      '...',
      'a name that policies can use for a port, such as web=8080/TCP; can be repeated',
    ),
    ttl: text(
      'TIME',
      'remove the resource after this time, such as 30s or 12h; default: it stays until it is removed',
    ),
    output: json('the change as one JSON object on stdout'),
    ...DAEMON_OPTIONS,
  },
  exitCodes:
    '0 ok, 1 remove: no resource has this name, 2 wrong use or invalid resource, 3 no daemon runs, or the change failed.',
  examples: [
    'namegate resource set billing-db --address 192.0.2.10 --label app=billing-db --label k8s:team=billing',
    'namegate resource set build-7 --address 2001:db8:7::/64 --label app=build --ttl 2h',
    'namegate resource remove billing-db',
  ],
  run: async (read, output) =>
    await (await import('../commands/resource.ts')).runResource(read, output),
}
