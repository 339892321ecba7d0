// Assertions for bugs of our own. Bad input is never an assertion: it is a value or a fault.

/** Throws when something that must hold does not. */
export function invariant(condition: boolean, text: string): asserts condition {
  if (!condition) throw new Error(`Invariant broken: ${text}`)
}

/** For the default branch of an exhaustive switch. */
export function assertNever(value: never): never {
  throw new Error(`Invariant broken: unexpected value ${JSON.stringify(value)}`)
}
