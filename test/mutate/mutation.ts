// One change of one line, and the tests that should notice it.

/** `before` is in the file exactly once, and `after` replaces it: one line, with its neighbours if they are needed to name the place. */
export interface Mutation {
  readonly file: string
  readonly before: string
  readonly after: string
  /** The likeliest first. The others run only if it passes. */
  readonly tests: readonly string[]
  /** The reason why no test can notice it. */
  readonly equivalent?: string
}

export type Change = readonly [before: string, after: string, equivalent?: string]

/** Changes of one file that the same tests should notice. */
export function inFile(
  file: string,
  tests: readonly string[],
  changes: readonly Change[],
): readonly Mutation[] {
  return changes.map(([before, after, equivalent]) => ({
    file,
    before,
    after,
    tests,
    ...(equivalent === undefined ? {} : { equivalent }),
  }))
}
