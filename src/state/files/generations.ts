// The files in the state folder. A generation is an image and the journal of the changes since the image began, or a journal
// alone. Files that no reader needs are removed; one that can not be removed is counted and stays for the next try.

import type { StateFaults } from '../faults.ts'
import type { Disk } from './disk.ts'

/** The longest file that is read or written, in octets. */
export const FILE_OCTETS_MAX = 2 ** 30
/** The most journals that are read behind an image. Every start and every failed image begins one; a good image ends them. */
export const JOURNALS_MAX = 60_000

export interface Generations {
  /** Ascending. */
  readonly images: readonly number[]
  readonly journals: readonly number[]
  /** Names of images that were not finished. */
  readonly unfinished: readonly string[]
  /** Greater than the generation of any file. */
  readonly next: number
}

export function imageName(generation: number): string {
  return `checkpoint.${generation}`
}

export function journalName(generation: number): string {
  return `journal.${generation}`
}

/** The name of an image that is not finished. */
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

/** Removes everything older than `generation`, and unfinished images. */
export async function removeBefore(
  disk: Disk,
  generation: number,
  faults: StateFaults,
): Promise<void> {
  await removeAll(disk, faults, (found) => [
    ...found.images.filter((each) => each < generation).map(imageName),
    ...found.journals.filter((each) => each < generation).map(journalName),
    ...found.unfinished,
  ])
}

/** Removes the images of processes that ended before the image did. */
export async function removeUnfinished(disk: Disk, faults: StateFaults): Promise<void> {
  await removeAll(disk, faults, ({ unfinished }) => unfinished)
}

async function removeAll(
  disk: Disk,
  faults: StateFaults,
  choose: (found: ReturnType<typeof findGenerations>) => readonly string[],
): Promise<void> {
  try {
    for (const name of choose(findGenerations(disk.names()))) await disk.remove(name)
  } catch (error) {
    faults.addError(error)
  }
}
