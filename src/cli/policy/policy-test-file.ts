// The file of `namegate policy test`: which policies, and what each endpoint may do by them. Read with places, so that an
// expectation that fails is found in the file, and a file with a fault is refused whole.

import { parseYamlDocument } from '../../documents/yaml-source.ts'
import type { ExplainedVerdict, Question } from '../../explain/explanation.ts'
import { readQuestion, type QuestionTexts } from '../../explain/read-question.ts'
import type { Fault, Position } from '../../core/errors.ts'
import { Reader, type FieldTable } from '../../documents/source-document.ts'
import { parseLabel } from '../../policy/match/labels.ts'

export interface Expectation {
  /** Sorted `source:key=value`. */
  readonly labels: readonly string[]
  /** As they were written. */
  readonly written: string
  readonly question: Question
  /** As it was written: `ask www.example.com`. */
  readonly asked: string
  readonly verdict: ExplainedVerdict
  /** A policy that has to be among those that made the verdict. */
  readonly policy: string | undefined
  readonly position: Position
}

export interface PolicyTest {
  readonly policies: readonly string[]
  readonly endpoints: readonly string[]
  readonly resources: readonly string[]
  readonly expectations: readonly Expectation[]
}

const FILE: FieldTable = new Map([
  ['policies', true],
  ['endpoints', true],
  ['resources', true],
  ['tests', true],
])
const TEST: FieldTable = new Map([
  ['labels', true],
  ['expect', true],
])
const QUESTION = ['ask', 'server', 'protocol', 'name', 'address', 'port'] as const
const EXPECTATION: FieldTable = new Map(
  [...QUESTION, 'verdict', 'policy'].map((key) => [key, true] as const),
)
const VERDICTS: readonly ExplainedVerdict[] = ['allow', 'deny', 'audit']

/** With faults the test means nothing. Never throws on any text. */
export function parsePolicyTest(
  text: string,
  file: string,
): { readonly test: PolicyTest; readonly faults: readonly Fault[] } {
  const { document, faults: syntax } = parseYamlDocument(text, file)
  const faults = [...syntax]
  const none = { policies: [], endpoints: [], resources: [], expectations: [] }
  if (document === undefined) return { test: none, faults }
  const reader = new Reader(document, { faults })
  const fields = reader.fields(FILE)
  if (fields === undefined) return { test: none, faults }
  const tests = fields.get('tests')?.items() ?? []
  if (tests.length === 0) (fields.get('tests') ?? reader).fault('found no test, expected one')
  const expectations = tests.flatMap(readTest)
  const [policies = [], endpoints = [], resources = []] = (
    ['policies', 'endpoints', 'resources'] as const
  ).map((key) => readPaths(fields.get(key)))
  return { test: { policies, endpoints, resources, expectations }, faults }
}

function readPaths(reader: Reader | undefined): readonly string[] {
  return (reader?.items('a list of paths') ?? []).flatMap((item) => item.text('a path') ?? [])
}

function readTest(reader: Reader): readonly Expectation[] {
  const fields = reader.fields(TEST)
  if (fields === undefined) return []
  const labels = fields.get('labels')
  if (labels === undefined) reader.fault('found no labels, expected those of an endpoint')
  const texts = labels === undefined ? [] : labelsIn(labels)
  const items = fields.get('expect')?.items() ?? []
  if (items.length === 0) {
    ;(fields.get('expect') ?? reader).fault('found no expectation in expect, expected one')
  }
  const written = (labels?.entries() ?? []).map(([key, value]) => `${key}=${String(value.value)}`)
  return items.flatMap((item) => readExpectation(item, texts, written.join(',')) ?? [])
}

/** A mapping of labels, each read as in `--labels`. */
function labelsIn(reader: Reader): readonly string[] {
  const labels = (reader.entries() ?? []).flatMap(([key, value]) => {
    const text = value.text()
    const read = text === undefined ? undefined : parseLabel(`${key}=${text}`)
    if (read?.kind === 'bad') value.fault(read.reason, 'key')
    return read?.kind === 'ok' ? read.labels : []
  })
  return [...new Set(labels)].sort()
}

function readExpectation(
  reader: Reader,
  labels: readonly string[],
  written: string,
): Expectation | undefined {
  const fields = reader.fields(EXPECTATION)
  if (fields === undefined) return undefined
  const texts = new Map<string, string>()
  for (const [key, field] of fields) {
    // A port alone is a number in YAML.
    const isPort = key === 'port' && typeof field.value === 'number'
    const text = isPort ? String(field.value) : field.text()
    if (text !== undefined) texts.set(key, text)
  }
  if (texts.size < fields.size) return undefined
  const verdict = VERDICTS.find((each) => each === texts.get('verdict'))
  if (verdict === undefined) {
    const field = fields.get('verdict')
    return field === undefined
      ? reader.fault('found no verdict, expected allow, deny or audit')
      : field.expected('allow, deny or audit')
  }
  const question: QuestionTexts = Object.fromEntries(QUESTION.map((key) => [key, texts.get(key)]))
  const result = readQuestion(question)
  if (result.kind === 'bad') return (fields.get(result.field) ?? reader).fault(result.reason)
  const asked = QUESTION.flatMap((key) => (texts.has(key) ? [`${key} ${texts.get(key)}`] : []))
  return {
    labels,
    written,
    question: result.question,
    asked: asked.join(' '),
    verdict,
    policy: texts.get('policy'),
    position: reader.position,
  }
}
