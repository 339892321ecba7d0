// The allow-list to which a user of `namegate up` adds lines. The daemon watches the file, so a new line takes effect within a
// second. An allow-list that the user gave can end without a line break, so no command appends to it.

import { shellWord } from '../shell-word.ts'

export interface WatchedList {
  /** Absolute path. The file may be missing: the first line makes it. */
  readonly file: string
  /** True for the list that `up` makes, whose last line is whole. */
  readonly isMade: boolean
}

/** Says how to add a line: as a command for a list that `up` makes, else in words. */
export function addLine(line: string, { file, isMade }: WatchedList): string {
  return isMade
    ? `echo ${shellWord(line)} >> ${shellWord(file)}`
    : `add the line ${line} to ${file}`
}
