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
    /** The last revision that the datapath confirmed. */
    readonly revision: number
    /** The revision that will contain every change up to now. */
    readonly desiredRevision: number
    /** Entries that the datapath refuses at present. */
    readonly refused: number
    /** True while a commit takes longer than a second. */
    readonly stalled: boolean
    /** Answers that are held until the datapath confirms their addresses. */
    readonly held: number
    /** Entries that another program changed or deleted, and that namegate restored. */
    readonly repaired: number
  }
  readonly policyRevision: number
  readonly realizedRevision: number
  readonly endpoints: {
    readonly known: number
    readonly enforcing: number
  }
  readonly policies: number
  /** For example `127.0.0.1:53`, or `0.0.0.0:10053 (tproxy)` for a mode other than explicit. */
  readonly listeners: readonly string[]
  /** Null if no listener has the mode tproxy or redirect. */
  readonly interception: string | null
  readonly upstreams: readonly {
    readonly address: string
    /** Null while the first answer can still come. */
    readonly answered: boolean | null
    readonly state: 'up' | 'failing' | 'down'
    /** True if new queries ask this server first. */
    readonly first: boolean
    /** Null before the first answer of the server. */
    readonly rttMs: number | null
    readonly failures: number
  }[]
  /** The state folder. Null if nothing is kept over restarts. */
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
  /** Progress in restoring what the previous daemon knew and enforced. Null if nothing is kept over restarts. */
  readonly restart: {
    readonly phase: 'pairs' | 'claims' | 'grace' | 'leaving' | 'done'
    readonly restored: number
    readonly left: number
    readonly claimed: number
    readonly kept: number
  } | null
  /** How often a label set got a fallback identity with fewer fqdn labels. */
  readonly identityFallbacks: number
  /** Bounds of which at least 80 % are in use, and bounds that were hit since the start. */
  readonly limits: readonly {
    readonly limit: string
    /** Null if only the hits are known. */
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
  /** The policy revision for which the answer waited. Absent without `realized=`. */
  readonly waitedFor?: number
}

/** An endpoint, as `namegate get endpoints -o json` prints it. */
export interface GateEndpoint {
  readonly id: number
  readonly name: string
  readonly addresses: readonly string[]
  readonly labels: readonly string[]
  readonly enforcing: boolean
  /** Why the endpoint is not enforced, and which setting of the endpoint, the node or a policy audits it. Empty if neither is the case. */
  readonly reason: string
  readonly audit: boolean
  readonly policies: readonly string[]
  readonly policyRevision: number
  readonly realizedRevision: number
  /** Connections that are older than the enforcement of the endpoint and are still allowed. */
  readonly adoptedFlows: number
}
