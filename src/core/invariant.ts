// Assertions for bugs of our own. Bad input is never an assertion: it is a value or a fault.

/**
 * Throws when something that must hold does not. `about`: the number that it is about, put into words only then; a text made
 * for each call costs more than most of what is asserted.
 */
export function invariant(condition: boolean, text: string, about?: number): asserts condition {
  if (condition) return
  throw new Error(`Invariant broken: ${text}${about === undefined ? '' : `: ${about}`}`)
}

/** For the default branch of an exhaustive switch. */
export function assertNever(value: never): never {
  throw new Error(`Invariant broken: unexpected value ${JSON.stringify(value)}`)
}
