// Breaks text into lines of a width, between words. A word that is wider than a line has a line of its own, so that it can be copied whole.

/** Returns at least one line. `width` is in characters. */
export function wrapText(text: string, width: number): readonly string[] {
  const lines: string[] = []
  let line = ''
  for (const word of text.split(' ')) {
    if (line === '') {
      line = word
    } else if (lengthOf(line) + 1 + lengthOf(word) <= width) {
      line += ` ${word}`
    } else {
      lines.push(line)
      line = word
    }
  }
  return [...lines, line]
}

function lengthOf(text: string): number {
  return Array.from(text).length
}
