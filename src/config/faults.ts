// Turns zod's issues into faults with a position in the file. A fault says which value was found and what was expected. For an unknown
// key, the fault suggests the known key that was probably meant.

import { z } from 'zod'
import type { Fault } from '../core/errors.ts'
import {
  describeValue,
  formatPath,
  isMapping,
  listWords,
  suggestion,
  type SourceDocument,
  type SourcePath,
} from '../documents/source-document.ts'

type Issue = z.core.$ZodIssue

/** Returns the faults in the order of the file. If several issues are about one value, only the first of them becomes a fault. */
export function toFaults(
  schema: z.core.$ZodType,
  document: SourceDocument,
  issues: readonly Issue[],
): readonly Fault[] {
  const seen = new Set<string>()
  const faults: Fault[] = []
  for (const issue of issues) {
    const path = issue.path.map((step) => (typeof step === 'symbol' ? String(step) : step))
    if (issue.code === 'unrecognized_keys') {
      faults.push(...issue.keys.map((key) => unknownKey(schema, document, path, key)))
    } else if (!seen.has(formatPath(path))) {
      seen.add(formatPath(path))
      faults.push({ position: document.positionOf(path), message: sentence(document, path, issue) })
    }
  }
  return faults.sort(byPlace)
}

/** Compares faults by their place in the file. */
export function byPlace({ position: a }: Fault, { position: b }: Fault): number {
  return a.line - b.line || a.column - b.column
}

function unknownKey(
  schema: z.core.$ZodType,
  document: SourceDocument,
  parent: SourcePath,
  key: string,
): Fault {
  const path = [...parent, key]
  const known = knownKeys(schema, parent)
  const hint = suggestion(key, known) || `, expected ${listWords(known)}`
  return {
    position: document.positionOf(path, 'key'),
    message: `unknown key ${formatPath(path)}${hint}`,
  }
}

function sentence(document: SourceDocument, path: SourcePath, issue: Issue): string {
  const found = describeValue(valueAt(document, path))
  const key = path.length === 0 ? '' : `${formatPath(path)}: `
  if (issue.code === 'custom' && issue.params?.['whole'] === true) return key + issue.message
  return `${key}found ${found}, expected ${expectation(issue)}`
}

function expectation(issue: Issue): string {
  if (issue.code === 'invalid_type') {
    if (issue.expected === 'object' || issue.expected === 'record') return 'a mapping'
    if (issue.expected === 'array') return 'a list'
    if (issue.expected === 'boolean') return 'true or false'
  }
  return issue.message
}

function valueAt(document: SourceDocument, path: SourcePath): unknown {
  let value = document.value
  for (const step of path) {
    if (Array.isArray(value) && typeof step === 'number') value = value[step]
    else if (isMapping(value)) value = value[step]
    else return undefined
  }
  return value
}

/** The keys that the schema allows in the mapping at `path`. Empty when the schema has no mapping there. */
function knownKeys(schema: z.core.$ZodType, path: SourcePath): readonly string[] {
  let at: z.core.$ZodType | undefined = unwrap(schema)
  for (const step of path) {
    if (at instanceof z.ZodArray) at = unwrap(at.element)
    else if (at instanceof z.ZodObject) at = unwrap(at.shape[step])
    else return []
  }
  return at instanceof z.ZodObject ? Object.keys(at.shape) : []
}

function unwrap(schema: z.core.$ZodType | undefined): z.core.$ZodType | undefined {
  let at = schema
  for (;;) {
    if (at instanceof z.ZodPipe) at = at.in
    else if (isWrapped(at)) at = at.def.innerType
    else return at
  }
}

function isWrapped(
  schema: z.core.$ZodType | undefined,
): schema is z.ZodDefault | z.ZodPrefault | z.ZodOptional {
  return (
    schema instanceof z.ZodDefault ||
    schema instanceof z.ZodPrefault ||
    schema instanceof z.ZodOptional
  )
}
