// Checks for bugs in namegate itself. Bad input is never checked here, because bad input gives a value or a fault.

/**
 * Throws if something that must hold does not hold. The number `about` is added to the text only then, because making a text for each call
 * would cost more than most of the checks.
 */
export function invariant(condition: boolean, text: string, about?: number): asserts condition {
  if (condition) return
  throw new Error(`Invariant broken: ${text}${about === undefined ? '' : `: ${about}`}`)
}
