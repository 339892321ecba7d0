// Takes away files that no reader needs any more. What can't be removed stays, counted; the next image tries again.

import type { Disk } from './disk.ts'
import type { StateFaults } from '../faults.ts'
import { findGenerations, imageName, journalName } from './generations.ts'

/** Everything older than `generation`, and images that were not finished. */
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

/** What a process that ended in the middle of an image left. */
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
