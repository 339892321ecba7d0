// Files read so that their texts outlive the process: the text of a file that has no fault is noted, and for one that is broken
// at the start the text that was in force last stands in.

import type { GoodTexts } from './good-texts.ts'
import type { SourceFilesOptions } from './source-files.ts'

type Reading<Item> = Pick<SourceFilesOptions<Item>, 'parse' | 'standIn'>

/** `texts` undefined: none are kept, and nothing stands in. */
export function keptReading<Item>(
  texts: GoodTexts | undefined,
  parse: Reading<Item>['parse'],
): Reading<Item> {
  if (texts === undefined) return { parse }
  const read: typeof parse = (text, file) => {
    const parsed = parse(text, file)
    if (parsed.faults.length === 0) texts.read(file, text)
    return parsed
  }
  const standIn = (path: string): readonly Item[] | undefined => {
    const text = texts.kept.get(path)
    if (text === undefined) return undefined
    const { items, faults } = read(text, path)
    return faults.length === 0 ? items : undefined
  }
  return { parse: read, standIn }
}
