// Commands that work on the kernel, with or without a daemon, and on files. What they do is loaded when they are called.

import type { ParsedCommand } from '../command.ts'
import { DAEMON_OPTIONS, flag, json, text, UNUSED_CONFIG } from './options.ts'

export const DATAPATH: ParsedCommand = {
  name: 'datapath',
  summary: 'compare, set the mode, take away or close what the kernel enforces, daemon or not',
  synopsis: ['datapath verify|detach|close', 'datapath mode enforce|audit|bypass'],
  words: ['verify', 'detach', 'close', 'mode', 'enforce', 'audit', 'bypass'],
  docs: 'docs/break-glass.md',
  about: `verify    compares what the kernel holds with what the daemon wants; every difference is a line
detach    takes all enforcement and the pinned maps or rules away, of whatever kind; a running daemon ends. Says when
          DNS is still intercepted, which 'intercept down' ends
close     before the daemon starts, as when a machine comes up (docs/boot.md): endpoints that nothing fences yet may do
          DNS only until it has loaded policy
mode      enforce: as policy says; audit: deny nothing, report it; bypass: judge nothing. Works on the pinned
          maps or the table of rules, so it needs no daemon (break-glass mode)`,
  options: {
    output: json('one JSON object on stdout'),
    config: text('FILE', 'config that names the socket and the pin path'),
    socket: DAEMON_OPTIONS.socket,
  },
  exitCodes:
    '0 ok, 1 verify found differences, 2 wrong use, 3 no daemon, or none that answers, no privilege, nothing pinned.',
  examples: ['namegate datapath verify', 'namegate datapath mode bypass'],
  run: async (read, output) =>
    await (await import('../commands/datapath.ts')).runDatapath(read, output),
}

export const INTERCEPT: ParsedCommand = {
  name: 'intercept',
  summary: 'the rules that bring queries to transparent listeners',
  synopsis: ['intercept up|down|show [--iptables] [--user UID]'],
  words: ['up', 'down', 'show'],
  about: `up        brings DNS queries to the listeners of mode tproxy and redirect: rules in namegate's own nftables
          tables, for tproxy also ip rules and a route; all of it or nothing. Again changes nothing
down      takes all of that away; needs no daemon
show      prints what 'up' would do, and whether that is in force: the running daemon says so, else the kernel`,
  options: {
    iptables: flag('show: text for iptables-restore and ip6tables-restore that does the same'),
    user: text(
      'UID',
      'the user that the daemon runs as, a number (redirect; default: the user who runs this command)',
    ),
    output: json('show: JSON on stdout, one object for each listener'),
    config: text('FILE', 'config that names the listeners'),
    socket: text('PATH', "show: the daemon's socket"),
  },
  exitCodes: `0 ok, 2 wrong use or nothing to intercept, 3 no privilege, a tool or the kernel refuses, a rule or route of
another program is in the way.`,
  examples: [
    'namegate intercept up',
    'namegate intercept show --iptables > rules; iptables-restore --noflush rules; ip6tables-restore --noflush rules',
    'namegate intercept down',
  ],
  run: async (read, output) =>
    await (await import('../commands/intercept.ts')).runIntercept(read, output),
}

export const MATCH: ParsedCommand = {
  name: 'match',
  summary: 'does the pattern match the names',
  synopsis: ['match PATTERN NAME...'],
  about: `Says whether PATTERN matches each NAME. PATTERN is what policy calls matchName or matchPattern:
  example.com       that name alone
  *.example.com     exactly one label in front; * inside a label is any run of letters, digits, - and _
  **.example.com    one or more labels in front
  *                 every name
Case and a final dot don't count. In a NAME, \\DDD is one octet.`,
  options: { output: json('one JSON array on stdout'), config: UNUSED_CONFIG },
  exitCodes: '0 all match, 1 some do not, 2 invalid pattern or name.',
  examples: [
    "namegate match '*.example.com' www.example.com",
    "namegate match '**.s3.amazonaws.com' bucket.eu.s3.amazonaws.com s3.amazonaws.com",
  ],
  run: async (read, output) => (await import('../commands/match.ts')).runMatch(read, output),
}

export const STATE: ParsedCommand = {
  name: 'state',
  summary: 'what a checkpoint or journal holds, and whether it is good',
  synopsis: ['state show|check FILE'],
  words: ['show', 'check'],
  docs: 'docs/state.md',
  about: `Looks into a file of the state folder (docs/state.md), a checkpoint or a journal; the daemon may run or not.

show      what it holds: numbers with their labels, endpoints, policy files, and every (endpoint, name, address)
check     whether it is good; else where it is not, and what was expected there. The end of a journal in the middle of
          a write is good: so it ends when the process is killed.`,
  options: { output: json('one JSON object on stdout'), config: UNUSED_CONFIG },
  exitCodes:
    '0 good, 1 damaged or written by a newer version, 2 wrong use or no such file, 3 cannot be read.',
  examples: [
    'namegate state show var/state/checkpoint.12',
    'namegate state check var/state/journal.12',
  ],
  run: async (read, output) => (await import('../commands/state.ts')).runState(read, output),
}

export const CONFIG: ParsedCommand = {
  name: 'config',
  summary: 'check the config file, or print its schema',
  synopsis: ['config check [FILE]', 'config schema'],
  words: ['check', 'schema'],
  about: `check     validates a config file (default: the one that other commands go by); every fault is one line on
          stdout: file:line:column: message
schema    prints the JSON Schema of the file: every key with its default, unit and meaning`,
  options: {
    output: json('check: one JSON array of {file, line, column, message} on stdout'),
    config: text('FILE', 'the file to check'),
  },
  exitCodes: '0 ok, 2 faults found or wrong use.',
  examples: [
    'namegate config check config/namegate.yaml',
    'namegate config schema > namegate.schema.json',
  ],
  run: async (read, output) => (await import('../commands/config.ts')).runConfig(read, output),
}
