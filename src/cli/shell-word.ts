// `shellWord` writes a text as one word of a POSIX shell, so that a printed command can be copied.

/** Returns the text as it is if no shell changes it, else in quotes. Line breaks become blanks, so that the word stays on one line. */
export function shellWord(text: string): string {
  if (/^[\w@%+=:,./-]+$/.test(text)) return text
  return `'${text.replace(/\s/g, ' ').replaceAll("'", String.raw`'\''`)}'`
}
