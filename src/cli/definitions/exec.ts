// This file defines `namegate exec`. The definition has a file of its own, because exec/main.ts imports this command and no other.

import type { RawCommand } from '../command.ts'
import { flag, list, text } from './options.ts'

export const EXEC: RawCommand = {
  name: 'exec',
  summary: 'run a command that can reach only the names that you allow',
  synopsis: [
    'exec [--allow TARGET[:PORT[/PROTO]]]... [--policy FILE] [OPTIONS] [--] COMMAND [ARGUMENT]...',
  ],
  docs: 'docs/exec.md',
  about: `Runs a command in its own namespaces. The command can ask for the allowed names and connect to the addresses in
their answers; everything else is refused. exec needs no daemon, no config file and no root. The command sees the same files as
the caller. docs/exec.md says how exec works and what it does not prevent.`,
  options: {
    allow: list(
      'TARGET',
      `name, pattern, address or prefix that the command can reach; with :PORT, :PORT/tcp or :PORT/udp only
there. '*.' is one DNS label, '**.' one or more. Names open no private address. Can be repeated`,
    ),
    policy: text('FILE', 'CiliumNetworkPolicy that selects app=exec; --allow adds rules to it'),
    upstream: list(
      'A:P',
      'DNS server, which exec asks from outside the sandbox; default: those of resolv.conf. Can be repeated',
    ),
    audit: flag('refuse nothing; report what policy would refuse'),
    suggest: text('FILE', 'write a policy that allows the names asked and the addresses reached'),
    publish: list(
      'PORT',
      'forward connections to this TCP port to the command: [ADDRESS:]PORT[:INNER]. Can be repeated',
    ),
    grace: text(
      'TIME',
      'time for which an address stays allowed after the TTL of its answer; default 60s',
    ),
    uplink: text(
      'NAME',
      'without root: pasta or slirp4netns; default: the first that is installed',
    ),
    json: flag('print the report at the end as one line of JSON on stderr'),
    quiet: flag('print nothing, except the reason if the command could not be run'),
  },
  exitCodes: `that of the command; 128 + N if signal N ended the command; 127 command not found, 126 command cannot be
executed; 2 wrong use or invalid policy, 3 the sandbox could not be made, so the command has not run.`,
  examples: [
    "namegate exec --allow '*.packages.example' --allow github.com:443/tcp -- npm ci",
    'namegate exec --audit --suggest policy.yaml -- make test',
    'namegate exec --policy policy.yaml --publish 8080 -- npm start',
  ],
  runRaw: async (args, output) =>
    await (await import('../commands/exec.ts')).runExecCommand(args, EXEC, output),
}
