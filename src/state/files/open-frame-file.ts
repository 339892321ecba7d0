// Begins a file of the state: its header says where it stands among the others.

import type { BootClock, Clock } from '../../core/clock.ts'
import { LABEL_RULES } from '../../identity/label-rules.ts'
import type { Disk } from './disk.ts'
import type { StateFaults } from '../faults.ts'
import { FORMAT_VERSION, type FileHeader } from './file-header.ts'
import { FrameFile } from './frame-file.ts'
import { journalName, unfinishedName } from './generations.ts'
import { stampOf, type Stamp } from '../stamp.ts'

export interface FrameFilePlace extends Pick<
  FileHeader,
  'kind' | 'generation' | 'run' | 'startsEmpty' | 'octetsBefore'
> {
  readonly onWritten: (stamp: Stamp) => void
  readonly onBroken: (file: FrameFile) => void
}

/** What all files are written with. */
export interface FrameFileShared {
  readonly disk: Disk
  readonly clock: Clock
  readonly boot: BootClock
  readonly bootId: Uint8Array
  readonly faults: StateFaults
}

/** The file, broken when its header could not be written; undefined when there is none. */
export function openFrameFile(
  { disk, clock, boot, bootId, faults }: FrameFileShared,
  { onWritten, onBroken, ...place }: FrameFilePlace,
): FrameFile | undefined {
  const name = place.kind === 'image' ? unfinishedName : journalName
  const now = (): Stamp => stampOf(clock, boot)
  const begun = now()
  try {
    const file: FrameFile = new FrameFile({
      file: disk.create(name(place.generation)),
      header: { ...place, version: FORMAT_VERSION, labelRules: LABEL_RULES, begun, bootId },
      faults,
      now,
      onWritten,
      onBroken: () => onBroken(file),
    })
    return file
  } catch (error) {
    faults.addError(error)
    return undefined
  }
}
