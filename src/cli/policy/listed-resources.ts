// Resources as `namegate get resources -o json` prints them, those of the admin API included, so that commands without a
// daemon can judge with what a running one knows. Ports that have names are not in that list.

import type { Fault } from '../../core/errors.ts'
import { isMapping } from '../../documents/source-document.ts'
import { parseResourceObject, type ResourceRecord } from '../../endpoints/resources.ts'

interface Listed {
  readonly resources: readonly ResourceRecord[]
  readonly faults: readonly Fault[]
}

/** Undefined: the text is something else, such as a resources file. */
export function parseListedResources(text: string, file: string): Listed | undefined {
  if (!text.trimStart().startsWith('[')) return undefined
  const resources: ResourceRecord[] = []
  const faults: Fault[] = []
  const rows = rowsOf(text)
  for (const row of rows ?? []) {
    const name = isMapping(row) ? row['name'] : undefined
    if (!isMapping(row) || typeof name !== 'string') continue
    const body = { addresses: row['addresses'], labels: labelsOf(row['labels']) }
    const parsed = parseResourceObject(name, body, `${file}: ${name}`)
    if (parsed.resource !== undefined) resources.push(parsed.resource)
    faults.push(...parsed.faults)
  }
  if (rows === undefined || resources.length + faults.length < rows.length) {
    const message = 'found a list, expected what namegate get resources -o json prints'
    faults.push({ position: { file, line: 1, column: 1 }, message })
  }
  return { resources, faults }
}

function rowsOf(text: string): readonly unknown[] | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return Array.isArray(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** `source:key=value` texts as a mapping. */
function labelsOf(texts: unknown): unknown {
  if (!Array.isArray(texts)) return texts
  return Object.fromEntries(
    texts.map((text) => {
      const [key = '', ...value] = String(text).split('=')
      return [key, value.join('=')]
    }),
  )
}
