// `runPolicyExplain` runs `namegate policy explain`. The command prints whether an endpoint with the given labels can ask a name or
// connect, and why. It reads only files.

import { existsSync } from 'node:fs'
import { hasQuestion, readQuestion, type QuestionTexts } from '../../explain/read-question.ts'
import { parseLabels } from '../../policy/match/labels.ts'
import {
  EXIT_NEGATIVE,
  EXIT_OK,
  toJson,
  type CommandOutput,
  type ParsedArguments,
} from '../command.ts'
import { formatExplanation } from './explanation-text.ts'
import { OfflineNode } from './offline-node.ts'
import { noteWorld, policyPaths, readWorld } from './read-world.ts'

const OR_ASK = 'or a question such as --ask NAME'
const NO_QUESTION =
  'policy explain needs a question, such as --ask www.example.com or --name www.example.com --port 443'
const TEXTS = ['ask', 'server', 'protocol', 'name', 'address', 'port'] as const

export function runPolicyExplain(read: ParsedArguments, output: CommandOutput): number {
  const paths = policyPaths(read)
  const stray = read.positionals.find((word) => !existsSync(word))
  if (stray !== undefined) {
    const found = `found the word ${JSON.stringify(stray)}`
    return read.wrong(`${found}, expected a policy file or folder, ${OR_ASK}`)
  }
  if (paths.length === 0) return read.wrong('policy explain needs --policies PATH')
  const given = read.texts.get('labels')
  if (given === undefined) return read.wrong('policy explain needs --labels')
  const labels = parseLabels(given)
  if (labels.kind === 'bad') return read.wrong(`--labels: ${labels.reason}`)
  const texts: QuestionTexts = Object.fromEntries(TEXTS.map((name) => [name, read.texts.get(name)]))
  if (!hasQuestion(texts)) return read.wrong(NO_QUESTION)
  const asked = readQuestion(texts, (field) => `--${field}`)
  if (asked.kind === 'bad') return read.wrong(`--${asked.field}: ${asked.reason}`)
  const world = readWorld(read, paths)
  if (typeof world === 'string') return read.wrong(world)
  noteWorld(world, output)
  const node = new OfflineNode({ ...world, askers: [labels.labels] })
  const found = node.explain(labels.labels, asked.question)
  output.stdout(read.texts.has('output') ? toJson(found) : formatExplanation(found))
  return found.verdict === 'deny' ? EXIT_NEGATIVE : EXIT_OK
}
