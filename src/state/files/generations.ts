// Names of the files in the state folder. A generation is an image and the journal of what changed since it was begun,
// or a journal alone.

/** Longest file that is read or written. */
export const FILE_OCTETS_MAX = 2 ** 30
/** Journals that are read behind an image: every start makes one, and every image that failed; a good one ends them. */
export const JOURNALS_MAX = 60_000

export interface Generations {
  /** Ascending. */
  readonly images: readonly number[]
  readonly journals: readonly number[]
  /** Images that were not finished. */
  readonly unfinished: readonly string[]
  /** Greater than that of any file. */
  readonly next: number
}

export function imageName(generation: number): string {
  return `checkpoint.${generation}`
}

export function journalName(generation: number): string {
  return `journal.${generation}`
}

/** An image that does not count yet. */
export function unfinishedName(generation: number): string {
  return `${imageName(generation)}.new`
}

export function findGenerations(names: readonly string[]): Generations {
  const images: number[] = []
  const journals: number[] = []
  const unfinished: string[] = []
  let last = 0
  for (const name of names) {
    const [, kind, digits, ending] =
      /^(checkpoint|journal)\.([1-9]\d{0,8})(\.new)?$/.exec(name) ?? []
    if (digits === undefined) continue
    const generation = Number(digits)
    last = Math.max(last, generation)
    if (ending !== undefined) unfinished.push(name)
    else if (kind === 'checkpoint') images.push(generation)
    else journals.push(generation)
  }
  images.sort((a, b) => a - b)
  journals.sort((a, b) => a - b)
  return { images, journals, unfinished, next: last + 1 }
}
