// This file defines commands that work on the kernel, with or without a daemon: `datapath`, `intercept` and `doctor`; and commands that
// work on files: `match`, `state` and `config`. The code of a command is loaded when the command is called.

import type { ParsedCommand } from '../command.ts'
import { DAEMON_OPTIONS, flag, json, text, UNUSED_CONFIG } from './options.ts'

export const DATAPATH: ParsedCommand = {
  name: 'datapath',
  summary:
    'verify what a running daemon enforces; with or without a daemon, remove enforcement, close workloads, or set the mode',
  synopsis: ['datapath verify|detach|close', 'datapath mode enforce|audit|bypass'],
  words: ['verify', 'detach', 'close', 'mode', 'enforce', 'audit', 'bypass'],
  docs: 'docs/break-glass.md',
  about: `verify    compares the entries in the kernel with those that the daemon wants; prints one line for each difference
detach    removes all enforcement: programs, pinned maps, rules. Ends a running daemon. Says if DNS is still intercepted;
          'intercept down' ends that
close     for use before the daemon starts, for example at boot (docs/boot.md): endpoints that are not enforced yet can
          send only DNS until the daemon has loaded policy
mode      enforce: deny as policy says; audit: allow and report what policy denies; bypass: allow everything, check
          nothing. Works on the pinned maps or the nftables rules, so it needs no daemon (break-glass mode)`,
  options: {
    output: json('one JSON object on stdout'),
    config: text('FILE', 'config with the socket and the pin path'),
    socket: DAEMON_OPTIONS.socket,
  },
  exitCodes:
    '0 ok, 1 verify found differences, 2 wrong use, 3 no daemon runs or it does not answer, no privilege, or nothing pinned.',
  examples: ['namegate datapath verify', 'namegate datapath mode bypass'],
  run: async (read, output) =>
    await (await import('../commands/datapath.ts')).runDatapath(read, output),
}

export const INTERCEPT: ParsedCommand = {
  name: 'intercept',
  summary: 'add, remove or print the rules that bring queries to transparent listeners',
  synopsis: ['intercept up|down|show [--iptables] [--user UID]'],
  words: ['up', 'down', 'show'],
  about: `up        adds the rules that bring DNS queries to the listeners of mode tproxy and redirect: rules in namegate's own
          nftables tables, for tproxy also ip rules and a route. Adds all of them or none; a second 'up' changes nothing
down      removes all these rules from the network namespace of this command; needs no daemon. If it finds none, it says
          where it looked, and ends with 1
show      prints the commands that 'up' runs, and if the rules are in force (from the daemon, or else from the kernel). Without
          --config, prints the rules of the daemon that runs`,
  options: {
    iptables: flag('show: print the rules for iptables-restore and ip6tables-restore instead'),
    user: text(
      'UID',
      'redirect: number of the user that runs the daemon; default: the user who runs this command',
    ),
    output: json('show: JSON on stdout, one object for each listener'),
    config: text('FILE', 'config with the listeners'),
    socket: text('PATH', "show: the daemon's socket"),
  },
  exitCodes: `0 ok, 1 down found nothing to remove, 2 wrong use or nothing to intercept, 3 no privilege, a tool or the kernel refused, or a rule or route
of another program is in the way.`,
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
  summary: 'say whether a pattern matches names',
  synopsis: ['match PATTERN NAME...'],
  about: `Says for each NAME if PATTERN matches it. PATTERN is a matchName or matchPattern of a policy:
  example.com       that name alone
  *.example.com     exactly one DNS label in front; * inside a DNS label matches any letters, digits, - and _
  **.example.com    one or more DNS labels in front
  *                 every name
Upper case is the same as lower case, and a final dot is ignored. In NAME, \\DDD is the octet with this decimal value.`,
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
  summary: 'show or check a checkpoint or journal',
  synopsis: ['state show|check FILE'],
  words: ['show', 'check'],
  docs: 'docs/state.md',
  about: `Reads a checkpoint or journal of the state folder (docs/state.md), with or without a running daemon.

show      prints the contents: numbers with their labels, endpoints, policy files, and every (endpoint, name, address)
check     says if the file is good, or where it is damaged and what was expected there. A journal that ends in the
          middle of a write is good, because a killed process can leave one.`,
  options: { output: json('one JSON object on stdout'), config: UNUSED_CONFIG },
  exitCodes:
    '0 good, 1 damaged or written by a newer version, 2 wrong use or no such file, 3 the file cannot be read.',
  examples: [
    'namegate state show var/state/checkpoint.12',
    'namegate state check var/state/journal.12',
  ],
  run: async (read, output) => (await import('../commands/state.ts')).runState(read, output),
}

export const DOCTOR: ParsedCommand = {
  name: 'doctor',
  summary: 'check what namegate needs of this host, and print a remedy for each finding',
  synopsis: ['doctor'],
  docs: 'docs/operations.md',
  about: `Checks the kernel and its features, privileges, rules and routes of other programs, ports, resolv.conf, upstream servers, the
clock, limits, folders, the configuration and the running daemon. Prints one line for each finding, and below it the remedy. Changes
nothing. Needs no root and no daemon, but says what it cannot check without them. If no daemon runs, it sends one query (. NS) to
each upstream server.`,
  options: {
    output: json('one JSON array of {check, result, found, remedy} on stdout'),
    config: text('FILE', 'the configuration that is checked, and for which the host is checked'),
    socket: text(
      'PATH',
      "the daemon's socket; without --config, the configuration of this daemon is checked",
    ),
  },
  exitCodes: '0 no problem (warnings are possible), 1 problems found, 2 wrong use.',
  examples: ['namegate doctor', 'namegate doctor -o json | jq \'.[] | select(.result != "ok")\''],
  run: async (read, output) =>
    await (await import('../commands/doctor.ts')).runDoctor(read, output),
}

export const CONFIG: ParsedCommand = {
  name: 'config',
  summary: 'check the config file, or print its schema',
  synopsis: ['config check [FILE]', 'config schema'],
  words: ['check', 'schema'],
  about: `check     validates a config file (default: the one that other commands use), and the files of policies, endpoints and
          resources that it names; prints each fault as one line on stdout: file:line:column: message
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
