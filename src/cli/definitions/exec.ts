// `namegate exec`. In a file of its own, because the program that has this command alone imports it (exec/main.ts).

import type { RawCommand } from '../command.ts'
import { flag, list, text } from './options.ts'

export const EXEC: RawCommand = {
  name: 'exec',
  summary: 'run a command fenced to the names that it may use',
  synopsis: [
    'exec [--allow TARGET[:PORT[/PROTO]]]... [--policy FILE] [OPTIONS] [--] COMMAND [ARGUMENT]...',
  ],
  docs: 'docs/exec.md',
  about: `Runs a command in namespaces of its own. It may ask for the names that are allowed and connect to the addresses
that they were answered with; everything else is refused. Needs no daemon, no config file and no root. Files are
the caller's. docs/exec.md says how it works and what it leaves open.`,
  options: {
    allow: list(
      'TARGET',
      `names it may ask for and connect to, or an address or prefix; TARGET:PORT and TARGET:PORT/tcp or
/udp allow less. '*.' is one label, '**.' one or more. Names open no private address. May be repeated`,
    ),
    policy: text('FILE', 'CiliumNetworkPolicy that selects app=exec; besides what --allow says'),
    upstream: list(
      'A:P',
      'name server, reached from outside; default: those of resolv.conf. May be repeated',
    ),
    audit: flag('refuse nothing, record what would be refused'),
    suggest: text('FILE', 'write a policy that allows what was asked and reached'),
    publish: list(
      'PORT',
      'a TCP port whose connections go to the command: [ADDRESS:]PORT[:INNER]. May be repeated',
    ),
    grace: text(
      'TIME',
      "an address stays usable for so long after its answer's time is over; default 60s",
    ),
    uplink: text('NAME', 'pasta or slirp4netns without root; default: the first that is installed'),
    json: flag('print the report at the end as one line of JSON on stderr'),
    quiet: flag('print nothing but why the command was not run'),
  },
  exitCodes: `the command's own; 128 + N when signal N ended it; 127 it is not found, 126 it cannot be executed;
2 wrong use or invalid policy, 3 the sandbox could not be made (then nothing of the command has run).`,
  examples: [
    "namegate exec --allow '*.packages.example' --allow github.com:443/tcp -- npm ci",
    'namegate exec --audit --suggest policy.yaml -- make test',
    'namegate exec --policy policy.yaml --publish 8080 -- npm start',
  ],
  runRaw: async (args, output) =>
    await (await import('../commands/exec.ts')).runExecCommand(args, EXEC, output),
}
