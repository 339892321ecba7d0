// What two lists of texts do not share.

/** What of `wanted` is missing, and what is there besides. */
export function differ(wanted: readonly string[], have: readonly string[]): readonly string[] {
  const [inWanted, inHave] = [new Set(wanted), new Set(have)]
  return [
    ...wanted.filter((each) => !inHave.has(each)).map((each) => `missing ${each}`),
    ...have.filter((each) => !inWanted.has(each)).map((each) => `too much ${each}`),
  ]
}
