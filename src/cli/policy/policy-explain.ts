// `namegate policy explain`: may an endpoint with these labels ask a name or connect, and why; from files alone.

import { existsSync } from 'node:fs'
import type { Explanation } from '../../explain/explanation.ts'
import { readQuestion, type QuestionTexts } from '../../explain/read-question.ts'
import { parseLabels } from '../../policy/match/labels.ts'
import {
  EXIT_NEGATIVE,
  EXIT_OK,
  readArguments,
  toJson,
  usageError,
  type CommandOutput,
} from '../command.ts'
import { OfflineNode } from './offline-node.ts'
import { noteDefaults, policyPaths, readWorld, WORLD_OPTIONS } from './read-world.ts'
import { formatPairs } from '../table.ts'

const HELP = `Usage: namegate policy explain --policies PATH... --labels K=V,... QUESTION [-o json]

Says whether an endpoint with these labels may ask a name, or connect, and what made it so: rules, selectors, defaults,
and when it is denied the rule that is nearest to allowing it. Needs no daemon.

QUESTION is one of:
  --ask NAME [--protocol P] [--server A:PORT]   may it ask NAME over UDP or TCP (UDP), of the server at address A
  [--name NAME] [--address ADDRESS] --port P    may it connect to what NAME resolves to, or to ADDRESS, or to ADDRESS as
                                                an answer for NAME gave it; P is 443/TCP, 53/UDP, 443

Options:
  --policies PATH   policy files and folders; several may follow, and it may be repeated
  --labels K=V,...  labels of the endpoint; SOURCE:K=V where the source matters, else external and k8s are tried
  --endpoints FILE  known endpoints; may be repeated
  --resources FILE  external resources, or what 'get resources -o json' printed; may be repeated
  --node ADDRESS    an address of the node itself; may be repeated
  --config FILE     config with default-egress, dns and the like; else the built-in defaults hold, which is said. Files of
                    endpoints and resources are those that options name, never those of the config
  -o json           one JSON object on stdout
  -h, --help        this text

Exit codes: 0 allowed, 1 denied, 2 wrong use or invalid files.

Examples:
  namegate policy explain --policies config/policies --labels app=shop --ask www.example.com
  namegate policy explain --policies config/policies --labels app=shop --name www.example.com --port 443/TCP
`

const OR_ASK = 'or a question such as --ask NAME'
const TEXTS = ['ask', 'server', 'protocol', 'name', 'address', 'port'] as const

export function policyExplainCommand(args: readonly string[], output: CommandOutput): number {
  const read = readArguments(args, HELP, output, {
    ...Object.fromEntries(TEXTS.map((name) => [name, { type: 'string' as const }])),
    labels: { type: 'string' },
    ...WORLD_OPTIONS,
  })
  if (typeof read === 'number') return read
  const paths = policyPaths(read)
  const stray = read.positionals.find((word) => !existsSync(word))
  if (stray !== undefined) {
    const found = `found the word ${JSON.stringify(stray)}`
    return usageError(`${found}, expected a policy file or folder, ${OR_ASK}`, HELP, output)
  }
  if (paths.length === 0) return usageError('policy explain needs --policies PATH', HELP, output)
  const given = read.texts.get('labels')
  if (given === undefined) return usageError('policy explain needs --labels', HELP, output)
  const labels = parseLabels(given)
  if (labels.kind === 'bad') return usageError(`--labels: ${labels.reason}`, HELP, output)
  const texts: QuestionTexts = Object.fromEntries(TEXTS.map((name) => [name, read.texts.get(name)]))
  const asked = readQuestion(texts)
  if (asked.kind === 'bad') return usageError(`--${asked.field}: ${asked.reason}`, HELP, output)
  const world = readWorld(read, paths)
  if (typeof world === 'string') return usageError(world, HELP, output)
  noteDefaults(read, world, output)
  const node = new OfflineNode({ ...world, askers: [labels.labels] })
  const found = node.explain(labels.labels, asked.question)
  output.stdout(read.texts.has('output') ? toJson(found) : formatExplanation(found))
  return found.verdict === 'deny' ? EXIT_NEGATIVE : EXIT_OK
}

function formatExplanation(found: Explanation): string {
  const { verdict, reason, rules, selectors, identities, labels, nearest, notes } = found
  const { egress, policies } = found.default
  const why = policies.length === 0 ? '' : ` (${policies.join(', ')})`
  return formatPairs([
    ['verdict', verdict],
    ['reason', reason],
    ...rules.map((rule) => {
      return ['rule', `${rule.policy} ${rule.file}:${rule.line} (${rule.action})`] as const
    }),
    ['selectors', selectors.join(', ') || '-'],
    ['identities', identities.join(', ') || '-'],
    ['labels', labels.join(', ') || '-'],
    ['default', `${egress}${why}`],
    ...(nearest === null
      ? []
      : [
          [
            'nearest',
            `${nearest.policy} ${nearest.file}:${nearest.line}: ${nearest.missing}`,
          ] as const,
        ]),
    ...notes.map((note) => ['note', note] as const),
  ])
}
