// `waitingText` says what `namegate up` waits for before the workload is protected. It has no side effects.

/** The reason of a daemon whose first question of its own has no answer yet (daemon/readiness.ts). */
const UNANSWERED = 'no upstream has answered yet'

/** Returns the text for the reasons why the daemon is not ready. */
export function waitingText(reasons: readonly string[]): string {
  const others = reasons.filter((reason) => reason !== UNANSWERED)
  if (others.length > 0) return `not ready yet: ${reasons.join('; ')}`
  return 'still starting: waits until a DNS server answers the first question of namegate itself (the workload has asked nothing yet; --upstream ADDRESS names another server)'
}
