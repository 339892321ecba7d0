// What a gate reports of itself and of its endpoints. Made from src/admin/shapes.ts by `npm run reference`; edit the schemas instead.

/** The state of a gate, as `namegate status -o json` prints it. */
export interface GateStatus {
  readonly health: 'ok' | 'degraded'
  readonly ready: boolean
  readonly notReady: readonly string[]
  readonly version: string
  readonly started: string
  readonly pid: number
  readonly mode: 'enforce' | 'audit' | 'bypass'
  readonly datapath: {
    readonly kind: string
    /** The last one in force. */
    readonly revision: number
    /** The one that will have all changes of now. */
    readonly desiredRevision: number
    /** Entries that it refuses at present. */
    readonly refused: number
    /** Whether a commit has taken longer than a second. */
    readonly stalled: boolean
    /** Answers that wait for it. */
    readonly held: number
    /** Entries that another program changed or deleted, and that were repaired. */
    readonly repaired: number
  }
  readonly policyRevision: number
  readonly realizedRevision: number
  readonly endpoints: {
    readonly known: number
    readonly enforcing: number
  }
  readonly policies: number
  /** `127.0.0.1:53`, with another mode than explicit `0.0.0.0:10053 (tproxy)`. */
  readonly listeners: readonly string[]
  /** Null when no listener has a transparent mode. */
  readonly interception: string | null
  readonly upstreams: readonly {
    readonly address: string
    /** Null before it was asked. */
    readonly answered: boolean | null
    readonly state: 'up' | 'failing' | 'down'
    /** Whether new queries ask it first. */
    readonly first: boolean
    /** Null before its first answer. */
    readonly rttMs: number | null
    readonly failures: number
  }[]
  /** The state folder; null where nothing is kept over restarts. */
  readonly kept: {
    readonly generation: number
    /** Octets. */
    readonly image: number
    /** Octets. */
    readonly journal: number
    /** Seconds since the last write. */
    readonly age: number
    readonly faults: number
  } | null
  /** Progress in restoring what the daemon before knew and enforced; null where nothing is kept. */
  readonly restart: {
    readonly phase: 'pairs' | 'claims' | 'grace' | 'leaving' | 'done'
    readonly restored: number
    readonly left: number
    readonly claimed: number
    readonly kept: number
  } | null
  /** Addresses that got a fallback identity with fewer fqdn labels. */
  readonly identityFallbacks: number
  /** Bounds that are used by 80 % or more, and those that were hit since the start. */
  readonly limits: readonly {
    readonly limit: string
    /** Null where only hits are known. */
    readonly use: number | null
    readonly bound: number
    readonly hits: number
  }[]
  readonly faults: readonly {
    readonly file: string
    readonly line: number
    readonly column: number
    readonly message: string
  }[]
  readonly warnings: readonly string[]
}

/** An endpoint, as `namegate get endpoints -o json` prints it. */
export interface GateEndpoint {
  readonly id: number
  readonly name: string
  readonly addresses: readonly string[]
  readonly labels: readonly string[]
  readonly enforcing: boolean
  /** Why it is not enforcing, and which setting of the endpoint, the node or a policy audits it; mostly empty. */
  readonly reason: string
  readonly audit: boolean
  readonly policies: readonly string[]
  readonly policyRevision: number
  readonly realizedRevision: number
  /** Flows that are older than its enforcement and still pass. */
  readonly adoptedFlows: number
}
