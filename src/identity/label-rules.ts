// Which rules make label sets from facts, and what became of the labels that earlier ones made: numbers that a version before gave
// are given again to the sets of now (docs/spec/promises "State and restart"). Whoever changes how labels are written, or which a set has,
// adds a step here.

/** The labels of a set as the next rules make them, of those that the rules before made. */
export type LabelStep = (labels: readonly string[]) => readonly string[]

/** The first leads from rules 1 to rules 2, and so on. */
const STEPS: readonly LabelStep[] = []

/** Saved state says by which its labels were made. */
export const LABEL_RULES = 1 + STEPS.length

/**
 * The labels of now of a set whose labels `rules` made. What a newer version made stays as it is: its number is given to no
 * other set, and to its own if that one is still written so.
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
