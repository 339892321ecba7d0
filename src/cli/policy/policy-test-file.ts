// `parsePolicyTest` reads the file of `namegate policy test`. The file names policies, and says what each endpoint can do under these
// policies. Every expectation keeps its place in the file. A file with a fault is refused as a whole.

import { parseYamlDocument } from '../../documents/yaml-source.ts'
import type { ExplainedVerdict, Question } from '../../explain/explanation.ts'
import { readQuestion, type QuestionTexts } from '../../explain/read-question.ts'
import type { Fault, Position } from '../../core/errors.ts'
import { Reader, type FieldTable } from '../../documents/source-document.ts'
import { parseLabel } from '../../policy/match/labels.ts'

/** One expectation: a question about an endpoint with certain labels, and the expected verdict. */
export interface Expectation {
  /** The endpoint's labels, `source:key=value`, sorted. */
  readonly labels: readonly string[]
  /** The labels as the file has them. */
  readonly written: string
  readonly question: Question
  /** The question as the file has it, such as `ask www.example.com`. */
  readonly asked: string
  readonly verdict: ExplainedVerdict
  /** A policy that must be among the policies that decided. Undefined if any policy can decide. */
  readonly policy: string | undefined
  readonly position: Position
}

/** The contents of a file. `policies`, `endpoints` and `resources` are paths. */
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

/** Reads the text of a file. If there are faults, the caller must not run the test. Never throws on any text. */
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

/** Reads a mapping of labels. Each label has the same meaning as in `--labels`. */
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
    // YAML reads a port without a protocol as a number.
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
