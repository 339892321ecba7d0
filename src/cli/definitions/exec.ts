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
      'ADDRESS',
      `DNS server, ADDRESS or ADDRESS:PORT, which exec asks from outside the sandbox; default: those of resolv.conf.
Can be repeated`,
    ),
    audit: flag('refuse nothing; report what policy would refuse'),
    'deny-response': text(
      'KIND',
      'answer to a refused name: refused (default) or nxdomain, at which more programs stop at once',
    ),
    'no-project': flag('do not use the allow-list .namegate.allow of the project'),
    suggest: text(
      'FILE',
      'write a policy that allows the names asked, and the addresses reached that an answer had',
    ),
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
    'env-clear': flag('give the command only basic variables such as PATH and HOME'),
    keep: list('VAR', 'with --env-clear: keep this variable too; FOO_* keeps all that begin so'),
    hide: list('PATH', 'show an empty file or an empty folder at this path. Can be repeated'),
    'read-only': flag('let the command write no file; --private-tmp is then the place to write'),
    'private-tmp': flag('give the command empty folders /tmp and /var/tmp of its own'),
    verbose: flag('print each refusal on stderr when it happens'),
    report: text('FILE|FD', 'write the report as JSON into a file, or to an open descriptor'),
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
