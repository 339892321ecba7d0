// The rules that make label sets from facts have versions. Saved state names the version of its labels, so that numbers of an older
// version go to the corresponding present sets (docs/spec/promises "State and restart"). A change of how labels are written, or of
// the labels that a set has, adds a step here.

/** Turns the labels of a set into those that the next version makes. */
export type LabelStep = (labels: readonly string[]) => readonly string[]

/** The first step leads from version 1 to version 2, and so on. */
const STEPS: readonly LabelStep[] = []

/** The present version. Saved state names the version that made its labels. */
export const LABEL_RULES = 1 + STEPS.length

/**
 * The present labels of a set that version `rules` made. Labels of a newer version stay as they are: their number goes to no
 * other set, and to their own set if it still has these labels.
 */
export function labelsOfNow(
  labels: readonly string[],
  rules: number,
  steps: readonly LabelStep[] = STEPS,
): readonly string[] {
  let now = labels
  for (const step of steps.slice(Math.max(0, rules - 1))) now = step(now)
  return now
}
