// `runExplain` runs `namegate explain`. The command prints whether an endpoint of the running daemon can ask for a name or connect, and why.
// The daemon answers by the policy that is in force, and by the names that the endpoint learned.

import type { Explanation } from '../../explain/explanation.ts'
import { readQuestion, type QuestionTexts } from '../../explain/read-question.ts'
import { openClient } from '../client.ts'
import {
  EXIT_NEGATIVE,
  EXIT_OK,
  toJson,
  type CommandOutput,
  type ParsedArguments,
} from '../command.ts'
import type { PartOf } from '../fields.ts'
import { formatExplanation } from '../policy/explanation-text.ts'

const TEXTS = ['ask', 'server', 'protocol', 'name', 'address', 'port'] as const

export async function runExplain(read: ParsedArguments, output: CommandOutput): Promise<number> {
  const { positionals, texts } = read
  const [word, ...rest] = positionals
  if (rest.length > 0) return read.wrong(`explain takes one name, found also ${rest.join(' ')}`)
  const field = texts.has('port') ? 'name' : 'ask'
  if (word !== undefined && texts.has(field)) {
    return read.wrong(`explain takes NAME or --${field} NAME`)
  }
  const endpoint = texts.get('as')
  if (endpoint === undefined) return read.wrong('explain needs --as ENDPOINT')
  const given = new Map(TEXTS.map((name) => [name, texts.get(name)]))
  if (word !== undefined) given.set(field, word)
  const question: QuestionTexts = Object.fromEntries(given)
  const asked = readQuestion(question)
  if (asked.kind === 'bad') return read.wrong(`--${asked.field}: ${asked.reason}`)
  const client = await openClient(read)
  const words = [...given].flatMap(([name, text]) =>
    text === undefined ? [] : [[name, text] as const],
  )
  const body = { endpoint, ...Object.fromEntries(words) }
  const found: PartOf<Explanation> = (await client.request('POST /v1/explain', { body })).value
  output.stdout(texts.has('output') ? toJson(found) : formatExplanation(found))
  return found.verdict === 'deny' ? EXIT_NEGATIVE : EXIT_OK
}
