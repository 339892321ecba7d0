// What the pipeline counts: what became of every query and of every answer.

export type PipelineCounters = ReturnType<typeof makePipelineCounters>

export function makePipelineCounters() {
  return {
    queries: 0,
    allowed: 0,
    denied: 0,
    /** Denied by policy, passed because audit says so. */
    audited: 0,
    unknownClients: 0,
    /** Of no known endpoint, forwarded all the same (`allow-unmanaged`). */
    unmanaged: 0,
    /** Came in where its endpoint's packets do not. */
    interfaceMismatch: 0,
    notReady: 0,
    malformedQueries: 0,
    overloaded: 0,
    /** Would have been shed, but more came than could be answered. */
    passedOver: 0,
    answers: 0,
    malformedAnswers: 0,
    failedTimeout: 0,
    failedSocket: 0,
    /** Answers to endpoints that went meanwhile. */
    orphaned: 0,
    exact: 0,
    degraded: 0,
    heldOut: 0,
    /** Held-out answers: SERVFAIL instead, nothing, or as they came. */
    heldOutServfail: 0,
    heldOutDropped: 0,
    heldOutReleased: 0,
  }
}
