// `runExplain` runs `namegate explain`. The command prints whether an endpoint of the running daemon can ask for a name or connect, and why.
// The daemon answers by the policy that is in force, and by the names that the endpoint learned.

import type { Explanation } from '../../explain/explanation.ts'
import { parseAddress } from '../../core/ip.ts'
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
import { onlyEndpoint } from '../only-endpoint.ts'
import { formatExplanation } from '../policy/explanation-text.ts'

const TEXTS = ['ask', 'server', 'protocol', 'name', 'address', 'port'] as const

export async function runExplain(read: ParsedArguments, output: CommandOutput): Promise<number> {
  const { positionals, texts } = read
  const [word, ...rest] = positionals
  if (rest.length > 0) return read.wrong(`explain takes one name, found also ${rest.join(' ')}`)
  const given = new Map(TEXTS.map((name) => [name, texts.get(name)]))
  const placed = word === undefined ? undefined : placeWord(word, given)
  if (placed?.fault !== undefined) return read.wrong(placed.fault)
  const question: QuestionTexts = Object.fromEntries(given)
  const asked = readQuestion(question)
  if (asked.kind === 'bad') {
    const where = asked.field === placed?.field ? JSON.stringify(word) : `--${asked.field}`
    return read.wrong(`${where}: ${asked.reason}`)
  }
  const client = await openClient(read)
  const endpoint = texts.get('as') ?? (await onlyEndpoint(client, output))
  const words = [...given].flatMap(([name, text]) =>
    text === undefined ? [] : [[name, text] as const],
  )
  const body = { endpoint, ...Object.fromEntries(words) }
  const found: PartOf<Explanation> = (await client.request('POST /v1/explain', { body })).value
  output.stdout(texts.has('output') ? toJson(found) : formatExplanation(found))
  return found.verdict === 'deny' ? EXIT_NEGATIVE : EXIT_OK
}

type Field = (typeof TEXTS)[number]

/** The field of the question to which the word belongs, or a fault. */
type PlacedWord =
  | { readonly field: Field; readonly fault?: undefined }
  | { readonly field?: undefined; readonly fault: string }

/** Adds the word, which is NAME, NAME:PORT, ADDRESS or ADDRESS:PORT, to the fields of a question. */
function placeWord(word: string, given: Map<Field, string | undefined>): PlacedWord {
  const { host, port } = splitPort(word)
  if (port !== undefined) {
    if (given.get('port') !== undefined) return { fault: `${word} has a port: leave out --port` }
    given.set('port', port)
  }
  const isAddress = parseAddress(host) !== undefined
  if (isAddress && given.get('port') === undefined) {
    return { fault: `${host} is an address, and needs a port: write explain ${host} --port 443` }
  }
  const connects = given.get('port') !== undefined
  const field = isAddress ? 'address' : connects ? 'name' : 'ask'
  if (given.get(field) !== undefined) return { fault: `explain takes NAME or --${field} NAME` }
  given.set(field, host)
  return { field }
}

/** Splits `a.example:443/tcp` and `[::1]:443`. A word of another form has no port. */
function splitPort(word: string): { readonly host: string; readonly port?: string } {
  const [, inner, plain = '', port] =
    /^(?:\[([^\]]+)\]|([^:[\]]+)):(\d+(?:\/[a-z]+)?)$/i.exec(word) ?? []
  return port === undefined ? { host: word } : { host: inner ?? plain, port }
}
