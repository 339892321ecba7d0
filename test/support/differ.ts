// The differences between two lists of texts.

/** The texts that `have` lacks, and the texts that only `have` has. */
export function differ(wanted: readonly string[], have: readonly string[]): readonly string[] {
  const [inWanted, inHave] = [new Set(wanted), new Set(have)]
  return [
    ...wanted.filter((each) => !inHave.has(each)).map((each) => `missing ${each}`),
    ...have.filter((each) => !inWanted.has(each)).map((each) => `too much ${each}`),
  ]
}
