// Names the sources in what a test process printed: a place in parts.js becomes the place in the TypeScript file.

import { readFileSync } from 'node:fs'
import { SourceMap } from 'node:module'
import { join, relative, resolve } from 'node:path'

const PLACE = /(?:file:\/\/)?\S*\/parts\.js:(\d+):(\d+)/g
let map

/** `folder`: the modules. The map is read when a text names a place for the first time. */
export function inSources(text, folder) {
  return text.replace(PLACE, (place, line, column) => {
    map ??= new SourceMap(JSON.parse(readFileSync(join(folder, 'parts.js.map'), 'utf8')))
    const { originalSource, originalLine, originalColumn } = map.findEntry(line - 1, column - 1)
    if (originalSource === undefined) return place
    return `${relative('.', resolve(folder, originalSource))}:${originalLine + 1}:${originalColumn + 1}`
  })
}
