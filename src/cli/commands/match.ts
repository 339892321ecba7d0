// `namegate match`: does a pattern match names? Says it per name, in the words of the pattern's own grammar.

import { formatName, parseName } from '../../core/name.ts'
import { matches, parseMatchPattern } from '../../policy/match/pattern.ts'
import {
  EXIT_NEGATIVE,
  EXIT_OK,
  EXIT_USAGE,
  readArguments,
  toJson,
  usageError,
  type CommandOutput,
} from '../command.ts'

const HELP = `Usage: namegate match [-o json] PATTERN NAME...

Says whether PATTERN matches each NAME. PATTERN is what policy calls matchName or matchPattern:
  example.com       that name alone
  *.example.com     exactly one label in front; * inside a label is any run of letters, digits, - and _
  **.example.com    one or more labels in front
  *                 every name
Case and a final dot don't count. In a NAME, \\DDD is one octet.

Options:
  -o json           one JSON array on stdout
  --config FILE     accepted, not used
  -h, --help        this text

Exit codes: 0 all match, 1 some do not, 2 invalid pattern or name.

Examples:
  namegate match '*.example.com' www.example.com
  namegate match '**.s3.amazonaws.com' bucket.eu.s3.amazonaws.com s3.amazonaws.com
`

export function matchCommand(args: readonly string[], output: CommandOutput): number {
  const read = readArguments(args, HELP, output)
  if (typeof read === 'number') return read
  const [patternText, ...nameTexts] = read.positionals
  if (patternText === undefined || nameTexts.length === 0) {
    return usageError('match needs a PATTERN and at least one NAME', HELP, output)
  }
  const parsed = parseMatchPattern(patternText)
  if (parsed.kind === 'bad') {
    output.stderr(`namegate: pattern ${JSON.stringify(patternText)}: ${parsed.reason}\n`)
    return EXIT_USAGE
  }
  const rows: { pattern: string; name: string; matches: boolean }[] = []
  let invalid = false
  for (const text of nameTexts) {
    const name = parseName(text)
    if (name.kind === 'bad') {
      output.stderr(`namegate: name ${JSON.stringify(text)}: ${name.reason}\n`)
      invalid = true
      continue
    }
    const verdict = matches(parsed.pattern, name.name)
    rows.push({ pattern: parsed.pattern.text, name: formatName(name.name), matches: verdict })
  }
  if (invalid) return EXIT_USAGE
  output.stdout(read.texts.has('output') ? toJson(rows) : formatRows(rows))
  return rows.every((row) => row.matches) ? EXIT_OK : EXIT_NEGATIVE
}

function formatRows(rows: readonly { readonly name: string; readonly matches: boolean }[]): string {
  const width = Math.max(...rows.map(({ name }) => name.length))
  return rows
    .map((row) => `${row.name.padEnd(width)}  ${row.matches ? 'matches' : 'does not match'}\n`)
    .join('')
}
