// `runExplain` runs `namegate explain`. The command prints whether an endpoint of the running daemon can ask for a name or connect, and why.
// The daemon answers by the policy that is in force, and by the names that the endpoint learned.

import type { Explanation } from '../../explain/explanation.ts'
import { parseAddress } from '../../core/ip.ts'
import { whyNoName } from '../../core/name-like.ts'
import { hasQuestion, readQuestion, type QuestionTexts } from '../../explain/read-question.ts'
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

const NO_QUESTION =
  'explain needs the NAME that is asked or connected to, such as explain www.example.com or explain www.example.com:443'
const TEXTS = ['ask', 'server', 'protocol', 'name', 'address', 'port'] as const

export async function runExplain(read: ParsedArguments, output: CommandOutput): Promise<number> {
  const { positionals, texts } = read
  const [word, ...rest] = positionals
  if (rest.length > 0) return read.wrong(`explain takes one name, found also ${rest.join(' ')}`)
  const given = new Map(TEXTS.map((name) => [name, texts.get(name)]))
  const placed = word === undefined ? undefined : placeWord(word, given)
  if (placed?.fault !== undefined) return read.wrong(placed.fault)
  const question: QuestionTexts = Object.fromEntries(given)
  if (!hasQuestion(question)) return read.wrong(NO_QUESTION)
  const spell = (field: Field): string => placed?.spelling.get(field) ?? `--${field}`
  const asked = readQuestion(question, spell)
  if (asked.kind === 'bad') return read.wrong(`${spell(asked.field)}: ${asked.reason}`)
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

/** The fields of the question that the word has, and how the forms of use write them, or a fault. */
type PlacedWord =
  | { readonly spelling: ReadonlyMap<Field, string>; readonly fault?: undefined }
  | { readonly spelling?: undefined; readonly fault: string }

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
  const why = isAddress ? undefined : whyNoName(host)
  if (why !== undefined) return { fault: `NAME: found ${JSON.stringify(host)}, which ${why}` }
  const connects = given.get('port') !== undefined || given.get('address') !== undefined
  const field = isAddress ? 'address' : connects ? 'name' : 'ask'
  if (given.get(field) !== undefined) return { fault: `explain takes NAME or --${field} NAME` }
  given.set(field, host)
  const spelling = new Map<Field, string>([[field, 'NAME']])
  if (port !== undefined) spelling.set('port', `P of ${word}`)
  return { spelling }
}

/** Splits `a.example:443/tcp`, `a.example:icmp` and `[::1]:443`. An address without brackets and a URL have no port. */
function splitPort(word: string): { readonly host: string; readonly port?: string } {
  const [, inner, plain = '', port] =
    /^(?:\[([^\]]+)\]|([^:[\]]+)):([^:/]*|[^:/]+\/[^:/]*)$/.exec(word) ?? []
  return port === undefined ? { host: word } : { host: inner ?? plain, port }
}
