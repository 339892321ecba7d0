// Reads a scenario's text as steps: a line that starts with a word in capitals is a step, and the indented lines below it are its block.
// Knows no meaning of steps. Faults name file and line.

export interface Step {
  readonly file: string
  readonly line: number
  /** The first word. */
  readonly verb: string
  /** All words after it. */
  readonly words: readonly string[]
  /** The indented lines, without the indent of the first. Empty if there are none. */
  readonly block: string
}

export interface Scenario {
  /** The comment at the beginning of the file, in one line. */
  readonly title: string
  readonly steps: readonly Step[]
}

export class ScenarioFault extends Error {
  constructor(step: Pick<Step, 'file' | 'line'>, message: string, cause?: unknown) {
    super(`${step.file}:${step.line}: ${message}`, { cause })
  }
}

export function parseScenario(text: string, file: string): Scenario {
  const lines = text.split('\n')
  const steps: Step[] = []
  for (let i = 0; i < lines.length; i++) {
    const content = withoutComment(lines[i] ?? '')
    if (content.trim() === '') continue
    const place = { file, line: i + 1 }
    const [verb = '', ...words] = content.trim().split(/\s+/)
    if (!/^[A-Z_]+$/.test(verb) || content.startsWith(' ')) {
      throw new ScenarioFault(place, `expected a step, found ${JSON.stringify(content.trim())}`)
    }
    const end = endOfBlock(lines, i + 1)
    steps.push({ ...place, verb, words, block: dedent(lines.slice(i + 1, end)) })
    i = end - 1
  }
  const title = titleOf(lines)
  if (title === '')
    throw new ScenarioFault(
      { file, line: 1 },
      'expected a comment that says what the scenario proves',
    )
  return { title, steps }
}

/** The lines of a block with their numbers, without empty ones and comments. */
export function blockLines(step: Step): readonly { readonly place: Step; readonly text: string }[] {
  return step.block.split('\n').flatMap((line, i) => {
    const text = withoutComment(line).trim()
    return text === '' ? [] : [{ place: { ...step, line: step.line + 1 + i }, text }]
  })
}

function titleOf(lines: readonly string[]): string {
  const end = lines.findIndex((line) => !line.startsWith('#'))
  const comment = lines.slice(0, end < 0 ? lines.length : end)
  return comment
    .map((line) => line.slice(1).trim())
    .join(' ')
    .trim()
}

/** A comment starts at the line's start or after a space. */
function withoutComment(line: string): string {
  return line.replace(/(^|\s)#.*$/, '')
}

/** The first line after the block. Empty lines at its end do not belong to it. */
function endOfBlock(lines: readonly string[], start: number): number {
  let end = start
  for (let i = start; i < lines.length; i++) {
    const line = lines[i] ?? ''
    if (line.trim() === '') continue
    if (!line.startsWith(' ')) break
    end = i + 1
  }
  return end
}

function dedent(lines: readonly string[]): string {
  const first = lines.find((line) => line.trim() !== '') ?? ''
  const indent = first.length - first.trimStart().length
  return lines.map((line) => line.slice(indent)).join('\n')
}
