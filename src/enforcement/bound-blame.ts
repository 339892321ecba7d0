// Where a fault stands of a configuration that passes a bound: at what changed, if that is known, for what was in force all along
// fitted.

import type { Position } from '../core/errors.ts'

/** Where its file has it, when it is from one. */
export interface Placed {
  readonly position?: Position
}

/** Whether a file is another than was in force. */
export type IsNew = (file: string) => boolean

/** The record that is one too many, if its file is new, else the last of a new file, else that record again; if from a file. */
export function placeOf(
  records: readonly Placed[],
  oneTooMany: number,
  isNew: IsNew,
): Position | undefined {
  const first = records[oneTooMany]?.position
  if (first !== undefined && isNew(first.file)) return first
  const last = records.findLast(({ position }) => position !== undefined && isNew(position.file))
  return last?.position ?? first
}
