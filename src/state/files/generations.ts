// This file names, finds and removes the files in the state folder. A generation is an image with the journal of the changes since the
// image began, or a journal alone. Files that no reader needs are removed. If a file cannot be removed, the fault is counted, and the next
// removal tries again.

import type { StateFaults } from '../faults.ts'
import type { Disk } from './disk.ts'

/** The longest file that is read or written, in octets. */
export const FILE_OCTETS_MAX = 2 ** 30
/** The most journals that are read after an image. Each start and each failed image adds a journal. A good image removes old ones. */
export const JOURNALS_MAX = 60_000

export interface Generations {
  /** Generations of the images, ascending. */
  readonly images: readonly number[]
  /** Generations of the journals, ascending. */
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

/** Returns the name that an image has until it is finished. */
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

/** Removes all files of generations before `generation`, and unfinished images. */
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

/** Removes the images of processes that ended before the image was finished. */
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
