// `namegate policy` and its verbs, which are commands themselves. What they do is loaded when they are called: checking
// needs no core.

import { nearest } from '../../core/did-you-mean.ts'
import type { ParsedCommand } from '../command.ts'
import { DAEMON_OPTIONS, flag, json, list, text, WORLD_OPTIONS } from './options.ts'

const DEFAULTS_CONFIG = `config with default-egress, dns and the like; else the built-in defaults hold, which is said`
const ARRAY_OF_FAULTS = 'one JSON array of {file, line, column, message} on stdout'

const CHECK: ParsedCommand = {
  name: 'policy check',
  summary: 'validate policy files',
  synopsis: ['policy check [PATH...]'],
  about: `Checks policy files; of a folder every *.yaml, *.yml, *.json and *.allow in it and below. Each fault is one line on
stdout: file:line:column: message. Nothing is loaded into a daemon.`,
  options: {
    output: json(ARRAY_OF_FAULTS),
    config: text(
      'FILE',
      `read them as this configuration says (policies.ingress, policies.unsupported-fields); without PATH its
policies.paths are checked. Without it the built-in defaults hold`,
    ),
  },
  exitCodes: `0 no faults, 1 faults found, 2 wrong use or a PATH that cannot be read. Other commands that read policies (explain,
test, lint, suggest, run) count faults as invalid input, 2.`,
  examples: [
    'namegate policy check config/policies',
    'namegate policy check team-a.yaml team-b.yaml',
  ],
  run: async (read, output) =>
    (await import('../policy/policy-check.ts')).runPolicyCheck(read, output),
}

const EXPLAIN: ParsedCommand = {
  name: 'policy explain',
  summary: 'may an endpoint ask a name, or connect, and why: without a daemon',
  synopsis: ['policy explain --policies PATH... --labels K=V,... QUESTION'],
  about: `Says whether an endpoint with these labels may ask a name, or connect, and what made it so: rules, selectors, defaults,
and when it is denied the rule that is nearest to allowing it. Needs no daemon.

QUESTION is one of:
  --ask NAME [--protocol P] [--server A:PORT]   may it ask NAME over UDP or TCP (UDP), of the server at address A
  [--name NAME] [--address ADDRESS] --port P    may it connect to what NAME resolves to, or to ADDRESS, or to ADDRESS as
                                                an answer for NAME gave it; P is 443/TCP, 53/UDP, 443`,
  options: {
    ask: text('NAME', 'see QUESTION'),
    server: text('A:PORT', 'see QUESTION'),
    protocol: text('P', 'see QUESTION'),
    name: text('NAME', 'see QUESTION'),
    address: text('ADDRESS', 'see QUESTION'),
    port: text('P', 'see QUESTION'),
    labels: text(
      'K=V,...',
      'labels of the endpoint; SOURCE:K=V where the source matters, else external and k8s are tried',
    ),
    ...WORLD_OPTIONS,
    config: text(
      'FILE',
      `${DEFAULTS_CONFIG}. Files of
endpoints and resources are those that options name, never those of the config`,
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
  summary: 'do policies do what a file expects of them',
  synopsis: ['policy test FILE... [--policies PATH]...'],
  docs: 'docs/policy-test.md',
  about: `Checks what policies allow and deny against the expectations in FILE (docs/policy-test.md has its form). Each expectation
that does not hold is shown with its place, what was expected and what was found. Needs no daemon.`,
  options: {
    ...WORLD_OPTIONS,
    policies: list(
      'PATH',
      'policy files and folders besides those that FILE names; may be repeated',
    ),
    config: text('FILE', DEFAULTS_CONFIG),
    output: json('one JSON array of all expectations on stdout'),
  },
  exitCodes: '0 all hold, 1 some do not, 2 wrong use or invalid files.',
  examples: [
    'namegate policy test tests/egress.yaml',
    'namegate policy test tests/egress.yaml --policies config/policies',
  ],
  run: async (read, output) =>
    (await import('../policy/policy-test.ts')).runPolicyTest(read, output),
}

const LINT: ParsedCommand = {
  name: 'policy lint',
  summary: 'what is valid but hardly meant',
  synopsis: [
    'policy lint PATH... [--endpoints FILE] [--resources FILE] [--chains FILE] [--portable]',
  ],
  docs: 'docs/policy-lint.md',
  about: `Finds what is valid in policies but hardly meant. Each finding is one line on stdout: file:line:column: code: what is
doubtful; what to do. docs/policy-lint.md explains the codes.`,
  options: {
    endpoints: list(
      'FILE',
      'known endpoints: tells policies and deny rules that select none of them; may be repeated',
    ),
    resources: list(
      'FILE',
      'external resources, which deny rules may mean as well; may be repeated',
    ),
    chains: text(
      'FILE',
      'names and where their aliases led, as YAML: { www.example.com: [edge.example.net] }',
    ),
    portable: flag('tell every pattern that some other engine reads otherwise'),
    output: json('one JSON array of {file, line, column, code, message, remedy} on stdout'),
    config: text(
      'FILE',
      'config with policies.ingress and the like; else the built-in defaults hold',
    ),
  },
  exitCodes: '0 nothing found, 1 something found, 2 wrong use or files with faults.',
  examples: [
    'namegate policy lint config/policies',
    'namegate policy lint config/policies --endpoints config/endpoints.yaml',
  ],
  run: async (read, output) =>
    (await import('../policy/policy-lint.ts')).runPolicyLint(read, output),
}

const SUGGEST: ParsedCommand = {
  name: 'policy suggest',
  summary: 'a policy from recorded flows, of one node or many',
  synopsis: [
    'policy suggest [--flows FILE...] [--labels K=V,...] [--policies PATH...] [--format policy|allow-list]',
  ],
  docs: 'docs/rollout.md',
  about: `The smallest policy that allows what recorded flows show: names that were asked, and names, peers and addresses that were
reached while audit let it pass. Each rule says what it rests on. What policy denied is not suggested, nor guarded addresses.
With --policies, which a daemon's own are without --flows, only what these do not allow yet: nothing when nothing is missing.`,
  options: {
    flows: list(
      'FILE',
      `flows of a node: a file, or the folder flows of a state folder; several may follow, and it may be
repeated; without it those that the running daemon keeps`,
    ),
    labels: text(
      'K=V,...',
      `only endpoints with these labels, as one policy that selects them by just these; else a policy for
each set of labels`,
    ),
    ...WORLD_OPTIONS,
    policies: list('PATH', 'policy files and folders that are in force already; may be repeated'),
    collapse: text('N', 'names with one parent become *.PARENT from N of them on; default 64'),
    format: text('FORMAT', 'policy (CiliumNetworkPolicy, the default) or allow-list'),
    config: text(
      'FILE',
      "config with identity-labels, default-egress and the like, and the daemon's socket",
    ),
    socket: DAEMON_OPTIONS.socket,
    output: json('one JSON array on stdout'),
  },
  exitCodes:
    '0 ok, also when there is nothing to suggest, 2 wrong use or invalid files, 3 no daemon.',
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
  summary: 'until the datapath enforces a revision of policies',
  synopsis: ['policy wait [--revision N] [--timeout DURATION]'],
  about: `Waits until the datapath enforces revision N of the policies completely: by default the one that the daemon wants when it
is asked. A changed file is read when it was quiet for 100 ms, which makes the next revision: 'namegate status' shows it.`,
  options: {
    revision: text('N', 'at least this revision'),
    timeout: text('D', 'give up after this time, such as 500ms, 30s, 2m; default 30s, at most 1h'),
    output: json('one JSON object {revision, policyRevision, realizedRevision} on stdout'),
    ...DAEMON_OPTIONS,
  },
  exitCodes: '0 realized, 1 not in that time, 2 wrong use, 3 no daemon, or none that answers.',
  examples: ['namegate policy wait', 'namegate policy wait --revision 12 --timeout 5s'],
  run: async (read, output) =>
    await (await import('../policy/policy-wait.ts')).runPolicyWait(read, output),
}

const VERBS = [CHECK, EXPLAIN, TEST, LINT, SUGGEST, WAIT]

export const POLICY: ParsedCommand = {
  name: 'policy',
  summary: 'check policy files, explain what they do, or suggest them',
  synopsis: ['policy check|explain|test|lint|suggest|wait ...'],
  about: `'namegate policy VERB --help' tells more.`,
  options: { config: text('FILE', 'config file') },
  exitCodes: '',
  examples: [
    'namegate policy check config/policies',
    'namegate policy explain --policies config/policies --labels app=shop --ask www.example.com',
  ],
  verbs: VERBS,
  /** Without a verb that there is; commands.ts runs the others. */
  run: ({ positionals: [verb], wrong }) => {
    if (verb === undefined) return wrong('policy needs a verb')
    const words = VERBS.map(({ name }) => name.slice('policy '.length))
    const meant = nearest(verb, words)
    const hint = meant === undefined ? '' : `; did you mean ${meant}?`
    return wrong(`policy: unknown verb ${JSON.stringify(verb)}${hint}`)
  },
}
