// `parseListedResources` reads resources from the output of `namegate get resources -o json`, so that commands without a daemon can use the
// resources of a running daemon. The output includes resources that were set by the admin API. It does not include named ports.

import type { Fault } from '../../core/errors.ts'
import { isMapping } from '../../documents/source-document.ts'
import { parseResourceObject, type ResourceRecord } from '../../endpoints/resources.ts'

interface Listed {
  readonly resources: readonly ResourceRecord[]
  readonly faults: readonly Fault[]
}

/** Returns the resources and faults. Undefined if the text is not a JSON list, for example a resources file. */
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

/** Returns a list of `source:key=value` texts as a mapping. */
function labelsOf(texts: unknown): unknown {
  if (!Array.isArray(texts)) return texts
  return Object.fromEntries(
    texts.map((text) => {
      const [key = '', ...value] = String(text).split('=')
      return [key, value.join('=')]
    }),
  )
}
