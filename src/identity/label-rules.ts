// This file has the version of the rules that make label sets from facts. Saved state contains the version of its labels. After an update,
// the saved number of a label set is given to the set that the present rules make instead (docs/spec/promises "State and restart"). When
// a release changes how labels are written, or which labels a set has, it adds a step here.

/** Turns the labels that one version makes for a set into the labels that the next version makes. */
export type LabelStep = (labels: readonly string[]) => readonly string[]

/** The first step turns labels of version 1 into labels of version 2, and so on. */
const STEPS: readonly LabelStep[] = []

/** The present version. */
export const LABEL_RULES = 1 + STEPS.length

/**
 * Returns the labels that the present rules make for a set whose labels version `rules` made. Labels of a newer version are returned
 * unchanged. Their number is then only used if a set has exactly these labels.
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
