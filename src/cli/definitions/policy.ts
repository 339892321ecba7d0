// This file defines `namegate policy` and its verbs, each of which has a definition of its own. The code of a verb is loaded when the verb
// is called, because `policy check` needs little of the code.

import type { ParsedCommand } from '../command.ts'
import { DAEMON_OPTIONS, flag, json, list, text, WORLD_OPTIONS } from './options.ts'

const DEFAULTS_CONFIG = `config with default-egress, dns and the like; default: $NAMEGATE_CONFIG, else the built-in defaults, which
is then reported`
const ARRAY_OF_FAULTS = 'one JSON array of {file, line, column, message} on stdout'

const CHECK: ParsedCommand = {
  name: 'policy check',
  summary: 'validate policy files',
  synopsis: ['policy check [PATH...]'],
  about: `Checks policy files. In a folder it checks every *.yaml, *.yml, *.json and *.allow, also in subfolders. Each fault is one line
on stdout: file:line:column: message. Nothing is loaded into a daemon.`,
  options: {
    output: json(ARRAY_OF_FAULTS),
    config: text(
      'FILE',
      `config with policies.ingress and policies.unsupported-fields; without PATH, its policies.paths are
checked. Default: $NAMEGATE_CONFIG, else the built-in defaults`,
    ),
  },
  exitCodes: `0 no faults, 1 faults found, 2 wrong use or a PATH that cannot be read. Other commands that read policies (explain,
test, lint, suggest, run) end with 2 if there are faults.`,
  examples: [
    'namegate policy check config/policies',
    'namegate policy check team-a.yaml team-b.yaml',
  ],
  run: async (read, output) =>
    (await import('../policy/policy-check.ts')).runPolicyCheck(read, output),
}

const EXPLAIN: ParsedCommand = {
  name: 'policy explain',
  summary: 'say if an endpoint can ask a name or connect, and why; needs no daemon',
  synopsis: ['policy explain --policies PATH... --labels K=V,... QUESTION'],
  about: `Says if an endpoint with these labels can ask for a name, or connect, and why: the rules, selectors and defaults that decide,
and for a denial the rule that comes nearest to allowing it. Needs no daemon.

QUESTION is one of:
  --ask NAME [--protocol P] [--server A:PORT]   can the endpoint ask the server at A:PORT for NAME, over UDP (default) or TCP
  [--name NAME] [--address ADDRESS] --port P    can the endpoint connect to the addresses of NAME, or to ADDRESS; with
                                                both: to ADDRESS from an answer for NAME. P: 443/TCP, 53/UDP, 443, ICMP`,
  options: {
    ask: text('NAME', 'see QUESTION'),
    server: text('A:PORT', 'see QUESTION'),
    protocol: text('P', 'see QUESTION'),
    name: text('NAME', 'see QUESTION'),
    address: text('ADDRESS', 'see QUESTION'),
    port: text('P', 'see QUESTION'),
    labels: text(
      'K=V,...',
      `labels of the endpoint; write SOURCE:K=V if the source matters, else external and k8s are tried;
K alone is K with the empty value`,
    ),
    ...WORLD_OPTIONS,
    config: text(
      'FILE',
      `${DEFAULTS_CONFIG}. Its files of endpoints and resources are read if no
option names others`,
    ),
    output: json('one JSON object on stdout'),
  },
  exitCodes: '0 allowed, 1 denied, 2 wrong use or invalid files.',
  examples: [
    'namegate policy explain --policies config/policies --labels app=shop --ask www.example.com',
    'namegate policy explain --policies config/policies --labels app=shop --name www.example.com --port 443/TCP',
  ],
  run: async (read, output) =>
    (await import('../policy/policy-explain.ts')).runPolicyExplain(read, output),
}

const TEST: ParsedCommand = {
  name: 'policy test',
  summary: 'compare policies with the expectations of a file',
  synopsis: ['policy test FILE... [--policies PATH]...'],
  docs: 'docs/policy-test.md',
  about: `Compares what policies allow and deny with the expectations in FILE (docs/policy-test.md says how to write them). Prints each
expectation that fails with its place, what was expected and what was found. Needs no daemon.`,
  options: {
    ...WORLD_OPTIONS,
    policies: list(
      'PATH',
      'policy files and folders in addition to those that FILE names; can be repeated',
    ),
    config: text('FILE', DEFAULTS_CONFIG),
    output: json('one JSON array of all expectations on stdout'),
  },
  exitCodes: '0 all expectations hold, 1 some fail, 2 wrong use or invalid files.',
  examples: [
    'namegate policy test tests/egress.yaml',
    'namegate policy test tests/egress.yaml --policies config/policies',
  ],
  run: async (read, output) =>
    (await import('../policy/policy-test.ts')).runPolicyTest(read, output),
}

const LINT: ParsedCommand = {
  name: 'policy lint',
  summary: 'report rules that are valid but probably not intended',
  synopsis: [
    'policy lint PATH... [--endpoints FILE] [--resources FILE] [--chains FILE] [--portable]',
  ],
  docs: 'docs/policy-lint.md',
  about: `Reports rules that are valid but probably not intended. Each finding is one line on stdout: file:line:column: code:
finding; remedy. docs/policy-lint.md explains the codes.`,
  options: {
    endpoints: list(
      'FILE',
      'file of endpoints; policies and deny rules that select none of them are reported; can be repeated',
    ),
    resources: list(
      'FILE',
      'file of external resources, which deny rules can also select; can be repeated',
    ),
    chains: text(
      'FILE',
      'YAML file with names and their CNAME targets: { www.example.com: [edge.example.net] }',
    ),
    portable: flag('report every pattern that means something else in some other policy engine'),
    output: json('one JSON array of {file, line, column, code, message, remedy} on stdout'),
    config: text(
      'FILE',
      'config with policies.ingress and the like; default: $NAMEGATE_CONFIG, else the built-in defaults',
    ),
  },
  exitCodes: '0 no findings, 1 findings, 2 wrong use or files with faults.',
  examples: [
    'namegate policy lint config/policies',
    'namegate policy lint config/policies --endpoints config/endpoints.yaml',
  ],
  run: async (read, output) =>
    (await import('../policy/policy-lint.ts')).runPolicyLint(read, output),
}

const SUGGEST: ParsedCommand = {
  name: 'policy suggest',
  summary: 'suggest a policy from recorded flows, of one node or many',
  synopsis: [
    'policy suggest [--flows FILE...] [--labels K=V,...] [--policies PATH...] [--format policy|allow-list]',
  ],
  docs: 'docs/rollout.md',
  about: `Prints the smallest policy that allows what recorded flows show: names that were asked, and names, peers and addresses that were
reached in audit. Each rule names its flows. Guarded addresses are left out, and flows that policy denied.
Prints only what --policies do not allow yet; without --flows, the default of --policies is the policies of the daemon's config.`,
  options: {
    flows: list(
      'FILE',
      `flows of a node: a file, or the folder flows of a state folder; takes several values, and can be
repeated; default: the flows of the running daemon`,
    ),
    labels: text(
      'K=V,...',
      `only endpoints with these labels, in one policy that selects exactly these labels; K alone is K with
the empty value; default: one policy for each set of labels`,
    ),
    ...WORLD_OPTIONS,
    policies: list('PATH', 'policy files and folders that are already in force; can be repeated'),
    collapse: text('N', 'write *.PARENT instead of N or more names with one parent; default 64'),
    format: text('FORMAT', 'policy (CiliumNetworkPolicy, the default) or allow-list'),
    config: text(
      'FILE',
      "config with identity-labels, default-egress and the like, and with the daemon's socket",
    ),
    socket: DAEMON_OPTIONS.socket,
    output: json('one JSON array on stdout'),
  },
  exitCodes:
    '0 ok, also if there is nothing to suggest, 2 wrong use or invalid files, 3 no daemon runs.',
  examples: [
    'namegate policy suggest --labels app=shop > shop.yaml',
    'namegate policy suggest --flows n1/flows n2/flows n3.jsonl --policies config/policies',
    'namegate policy suggest --format allow-list --labels app=shop --collapse 3',
  ],
  run: async (read, output) =>
    await (await import('../policy/policy-suggest.ts')).runPolicySuggest(read, output),
}

const WAIT: ParsedCommand = {
  name: 'policy wait',
  summary: 'wait until the datapath enforces a revision of policies',
  synopsis: ['policy wait [--revision N] [--timeout DURATION]'],
  about: `Waits until the datapath enforces all of revision N of the policies; the default is the newest revision that the daemon
has loaded. The daemon reads a changed file 100 ms after its last change, and then makes the next revision ('namegate status').`,
  options: {
    revision: text('N', 'wait for this revision or a later one'),
    timeout: text('D', 'give up after this time, such as 500ms, 30s, 2m; default 30s, at most 1h'),
    output: json('one JSON object {revision, policyRevision, realizedRevision} on stdout'),
    ...DAEMON_OPTIONS,
  },
  exitCodes:
    '0 enforced, 1 not enforced in that time, 2 wrong use, 3 no daemon runs or it does not answer.',
  examples: ['namegate policy wait', 'namegate policy wait --revision 12 --timeout 5s'],
  run: async (read, output) =>
    await (await import('../policy/policy-wait.ts')).runPolicyWait(read, output),
}

const SCHEMA: ParsedCommand = {
  name: 'policy schema',
  summary: 'print the JSON Schema of policy files, for editors',
  synopsis: ['policy schema'],
  docs: 'docs/policies.md',
  about: `Prints the JSON Schema of the policies that namegate reads: CiliumNetworkPolicy, CiliumClusterwideNetworkPolicy,
NetworkPolicy and ClusterNetworkPolicy. A field that namegate refuses is an error in the schema too, with the reason. Some faults need more
than a schema: 'namegate policy check' finds all.`,
  options: {},
  exitCodes: '0 ok, 2 wrong use.',
  examples: ['namegate policy schema > policy.schema.json'],
  run: async (read, output) =>
    (await import('../policy/policy-schema.ts')).runPolicySchema(read, output),
}

const VERBS = [CHECK, EXPLAIN, TEST, LINT, SUGGEST, WAIT, SCHEMA]

export const POLICY: ParsedCommand = {
  name: 'policy',
  summary: 'check policy files, explain what they do, or suggest them',
  synopsis: ['policy check|explain|test|lint|suggest|wait|schema ...'],
  about: `'namegate policy VERB --help' prints the help of one verb.`,
  options: { config: text('FILE', 'config file') },
  exitCodes: '',
  examples: [
    'namegate policy check config/policies',
    'namegate policy explain --policies config/policies --labels app=shop --ask www.example.com',
  ],
  verbs: VERBS,
  /** Runs if the verb is missing or unknown. Otherwise commands.ts runs the verb. */
  run: ({ positionals: [verb], wrong }) => {
    if (verb === undefined) return wrong('policy needs a verb')
    return wrong(`policy: unknown verb ${JSON.stringify(verb)}`)
  },
}
