// Reads our own sources for the architecture test: a light tokenizer that blanks comments, strings and regular expressions (line numbers
// stay), the imports of a file, and its functions by the indentation of oxfmt.

import { readFileSync, readdirSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'

export interface Source {
  /** From the top of the repository, for example `src/core/ip.ts`. */
  readonly path: string
  readonly text: string
  /** `text` with blanks in place of everything that is not code; quotes stay. */
  readonly code: string
  readonly imports: readonly Import[]
}

export interface Import {
  /** The text of the import. A relative import is resolved from the top of the repository. */
  readonly target: string
  readonly typeOnly: boolean
  /** Imported with `import()` when needed, so it makes no cycle at load time. */
  readonly dynamic: boolean
}

/** All TypeScript files of a folder, sorted by path. */
export function readSources(folder: string): Source[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((path) => join(folder, path))
    .filter((path) => path.endsWith('.ts') && !path.includes('node_modules'))
    .sort()
    .map((path) => toSource(path, readFileSync(path, 'utf8')))
}

export function toSource(path: string, text: string): Source {
  return { path, text, code: blankNonCode(text), imports: importsOf(path, text) }
}

const IMPORT =
  /^(?:import|export)\s+(type\s)?[^'"`;=]*?from\s+'([^']+)'|^import\s+'([^']+)'|\bimport\('([^']+)'\)/gm

function importsOf(path: string, text: string): Import[] {
  return [...text.matchAll(IMPORT)].map((match) => {
    const written = match[2] ?? match[3] ?? match[4] ?? ''
    const target = written.startsWith('.') ? normalize(join(dirname(path), written)) : written
    return { target, typeOnly: match[1] !== undefined, dynamic: match[4] !== undefined }
  })
}

/** Reads one token at a time. A `${` of a template begins code, up to its `}`. */
export function blankNonCode(text: string): string {
  const token =
    /\/\/[^\n]*|\/\*[\s\S]*?\*\/|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|(?<=(?:^|[=(,:[!&|?{};>]|return|case)\s*)\/(?![/*])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\[\n])+\/[a-z]*|[`{}]/gm
  const templateDepths: number[] = []
  let depth = 0
  let out = ''
  let at = 0
  for (let match = token.exec(text); match !== null; match = token.exec(text)) {
    out += text.slice(at, match.index)
    const found = match[0]
    at = match.index + found.length
    if (found === '{') depth++
    const closesHole = found === '}' && templateDepths.at(-1) === depth
    if (found === '}') depth--
    if (found === '`' || closesHole) {
      if (closesHole) templateDepths.pop()
      const end = templateEnd(text, at)
      const hole = text.startsWith('${', end)
      at = hole ? end + 2 : end + 1
      if (hole) templateDepths.push(++depth)
      out += found + blanksFor(text.slice(match.index + 1, at))
      token.lastIndex = at
    } else {
      out += found === '{' || found === '}' ? found : blankToken(found)
    }
  }
  return out + text.slice(at)
}

/** Where the text part of a template ends: at its backtick or at a `${`. */
function templateEnd(text: string, from: number): number {
  for (let at = from; at < text.length; at++) {
    if (text[at] === '\\') at++
    else if (text[at] === '`' || text.startsWith('${', at)) return at
  }
  return text.length
}

function blankToken(found: string): string {
  const quote = found[0] === "'" || found[0] === '"' ? found[0] : ''
  return quote + blanksFor(found.slice(quote.length, found.length - quote.length)) + quote
}

function blanksFor(text: string): string {
  return text.replace(/[^\n]/g, ' ')
}

export interface FunctionSpan {
  readonly name: string
  /** Line of its head, from 1. */
  readonly line: number
  readonly lines: number
}

const HEAD =
  /^(\s*)(?:(?:export\s+)?(?:async\s+)?function\*?\s*(\w+)|(?:(?:static|async|get|set|override|private|protected)\s+|\*)*(#?\w+)\s*(?:<[^>]*>)?\((?!.*\)\s*\)$)|(?:export\s+)?const\s+(\w+)\s*=.*=>\s*\{$)/
const NOT_A_METHOD =
  /^(?:if|for|while|switch|catch|with|return|await|new|throw|typeof|function|super)$/

/** Functions, methods, and arrows bound to a name. A body ends at the first `}` with the indentation of its head. */
export function functionsOf(code: string): FunctionSpan[] {
  const lines = code.split('\n')
  const spans: FunctionSpan[] = []
  lines.forEach((line, index) => {
    const match = HEAD.exec(line)
    const name = match?.[2] ?? match?.[3] ?? match?.[4]
    if (match === null || name === undefined || NOT_A_METHOD.test(name)) return
    const end = bodyEnd(lines, index, match[1] ?? '')
    if (end !== undefined) spans.push({ name, line: index + 1, lines: end - index + 1 })
  })
  return spans
}

/** Line of the closing brace. Undefined if the head has no body (a signature, a call). */
function bodyEnd(lines: readonly string[], head: number, indent: string): number | undefined {
  let at = head
  while (!(lines[at] ?? '').trimEnd().endsWith('{')) {
    at++
    const line = lines[at]
    if (line === undefined) return undefined
    if (line.startsWith(`${indent})`) && !line.trimEnd().endsWith('{')) return undefined
    if (line.trim() !== '' && indentOf(line) < indent.length) return undefined
    if (indentOf(line) === indent.length && !/^\s*[)}]/.test(line)) return undefined
  }
  for (let end = at + 1; end < lines.length; end++) {
    const line = lines[end] ?? ''
    if (line.startsWith(`${indent}}`) && !line.trimEnd().endsWith('{')) return end
  }
  return undefined
}

function indentOf(line: string): number {
  return line.length - line.trimStart().length
}
