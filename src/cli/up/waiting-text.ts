// `waitingText` says what `namegate up` waits for before the workload is protected. It has no side effects.

/** The reason of a daemon whose first question of its own has no answer yet (daemon/readiness.ts). */
const UNANSWERED = 'no upstream has answered yet'

/** Returns the text for the reasons why the daemon is not ready. `servers`: the DNS servers that it asks, as text. */
export function waitingText(reasons: readonly string[], servers: string): string {
  const others = reasons.filter((reason) => reason !== UNANSWERED)
  if (others.length > 0) return `not ready yet: ${reasons.join('; ')}`
  return `still starting: no answer from ${servers} to namegate's own first question (--upstream ADDRESS names another server)`
}
