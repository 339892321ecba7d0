// `runPolicyTest` runs `namegate policy test`. The command compares the expectations of a file with what policies allow and deny, without a
// daemon, for use in CI jobs.

import { readTextFile } from '../../config/files.ts'
import type { Explanation } from '../../explain/explanation.ts'
import { InvalidInputError } from '../../core/errors.ts'
import {
  EXIT_NEGATIVE,
  EXIT_OK,
  toJson,
  type CommandOutput,
  type ParsedArguments,
} from '../command.ts'
import { OfflineNode } from './offline-node.ts'
import { parsePolicyTest, type Expectation, type PolicyTest } from './policy-test-file.ts'
import { noteWorld, readWorld } from './read-world.ts'
import { cleanCell } from '../table.ts'

interface Outcome {
  readonly expectation: Expectation
  readonly found: Explanation
  readonly holds: boolean
}

export function runPolicyTest(read: ParsedArguments, output: CommandOutput): number {
  if (read.positionals.length === 0) {
    return read.wrong('policy test needs at least one FILE')
  }
  const outcomes: Outcome[] = []
  for (const file of read.positionals) {
    const test = readTest(file)
    const paths = [...(read.lists.get('policies') ?? []), ...test.policies]
    if (paths.length === 0) {
      return read.wrong(`${file} names no policies: give --policies PATH`)
    }
    const lists = new Map(read.lists)
    for (const key of ['endpoints', 'resources'] as const) {
      lists.set(key, [...(read.lists.get(key) ?? []), ...test[key]])
    }
    const world = readWorld({ ...read, lists }, paths)
    if (typeof world === 'string') return read.wrong(world)
    noteWorld(world, output)
    const askers = test.expectations.map(({ labels }) => labels)
    const node = new OfflineNode({ ...world, askers })
    outcomes.push(...test.expectations.map((expectation) => check(node, expectation)))
  }
  const failed = outcomes.filter(({ holds }) => !holds)
  if (read.texts.has('output')) output.stdout(toJson(outcomes.map(toRow)))
  else output.stdout(failed.map(formatFailed).join('') + summary(outcomes.length, failed.length))
  return failed.length === 0 ? EXIT_OK : EXIT_NEGATIVE
}

function readTest(file: string): PolicyTest {
  const text = readTextFile(file)
  if (text.kind === 'bad') throw new InvalidInputError([text.fault])
  const { test, faults } = parsePolicyTest(text.text, file)
  if (faults.length > 0) throw new InvalidInputError(faults)
  return test
}

function check(node: OfflineNode, expectation: Expectation): Outcome {
  const found = node.explain(expectation.labels, expectation.question)
  const { policy, verdict } = expectation
  const made = policy === undefined || found.rules.some((rule) => rule.policy === policy)
  return { expectation, found, holds: found.verdict === verdict && made }
}

/** Returns the text for an expectation that does not hold: its place, labels and question, and then the expected and the found verdict. */
function formatFailed({ expectation, found }: Outcome): string {
  const { position, written, asked, verdict, policy } = expectation
  const place = `${position.file}:${position.line}:${position.column}`
  const rules = found.rules.map((rule) => `${rule.policy} ${rule.file}:${rule.line}`)
  const by = rules.length === 0 ? '' : ` by ${rules.join(', ')}`
  const lines = [
    `${place}: ${written || 'no labels'}: ${asked}`,
    `  - ${verdict}${policy === undefined ? '' : ` by ${policy}`}`,
    `  + ${found.verdict}${by}: ${found.reason}`,
    ...(found.nearest === null
      ? []
      : [
          `    nearest: ${found.nearest.policy} ${found.nearest.file}:${found.nearest.line}: ${found.nearest.missing}`,
        ]),
  ]
  return lines.map((line) => `${cleanCell(line)}\n`).join('')
}

function summary(all: number, failed: number): string {
  const what = `${all} ${all === 1 ? 'expectation' : 'expectations'}`
  return failed === 0 ? `${what}: all hold\n` : `${what}: ${failed} not as expected\n`
}

function toRow({ expectation, found, holds }: Outcome): object {
  const { position, labels, asked, verdict, policy } = expectation
  return { ...position, labels, asked, expected: { verdict, policy: policy ?? null }, holds, found }
}
