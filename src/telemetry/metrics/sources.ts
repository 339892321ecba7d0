// What metrics read, as the daemon has it. Only the shapes of counters are named here, because telemetry stands
// below the parts that count; the parts themselves fit.

import type { CoreState } from '../../enforcement/core-state.ts'
import type { Policy } from '../../policy/rule.ts'
import type { LimitUse } from '../limits.ts'

type Counters<Name extends string> = Readonly<Record<Name, number>>

export interface MetricsSources {
  readonly version: string
  readonly core: CoreState
  readonly pipeline: { readonly counters: PipelineCounters }
  readonly judge: { readonly counters: Counters<'serverDenied' | 'serverUntrusted'> }
  readonly releases: {
    readonly count: number
    readonly counters: Counters<'held' | 'overdue' | 'overBound'>
    readonly times: {
      readonly totalMs: number
      readings(): Iterable<readonly [string, number]>
    }
  }
  readonly learner: { readonly counters: Counters<'addresses' | 'guarded' | 'overBound'> }
  readonly responder: { readonly counters: Counters<'truncated'> }
  /** Undefined when nothing is ever taken out of answers. */
  readonly stripping:
    | {
        readonly counters: Counters<'stripped' | 'failed'>
        readonly taken: Counters<'addresses' | 'hints' | 'unreadable' | 'signatures'>
      }
    | undefined
  readonly unknown: {
    readonly waiting: number
    readonly counters: Counters<
      'becameKnown' | 'timedOut' | 'refusedFull' | 'refusedClientFull' | 'refusedLong'
    >
  }
  readonly prewarm:
    { readonly counters: Counters<'asked' | 'answered' | 'unanswered' | 'leftOut'> } | undefined
  readonly adoption: { readonly counters: Counters<'flows' | 'notTaken'> }
  readonly upstream: UpstreamSource
  readonly listeners: {
    readonly udp: readonly { readonly counters: UdpCounters }[]
    readonly tcp: { readonly counters: TcpCounters }
  }
  readonly policies: { readonly revision: number; readonly policies: readonly Policy[] }
  /** Peers of deny rules that select nothing. */
  readonly emptyDenies: { readonly texts: readonly string[] }
  readonly transition: { readonly realizedRevision: number }
  readonly endpoints: { readonly registry: { readonly size: number } }
  /** Undefined where no flows are kept. */
  readonly keptFlows?:
    | {
        readonly lost: number
        readonly remembered: number
        readonly failed: number
        lines(): Iterable<readonly [output: string, lines: number]>
        refused(): Iterable<readonly [output: string, lines: number]>
      }
    | undefined
  /** Files of our own that somebody removed and that were made anew. */
  readonly putBack?: { readonly counts: Counters<string> } | undefined
  /** Absent where the datapath sees to it by itself. */
  readonly repair?:
    { readonly counters: { readonly walks: number; readonly repaired: number } } | undefined
  /** What brings queries to the listeners. */
  readonly interception?: {
    readonly counters: Counters<'repairs'>
    /** Undefined when no listener has a transparent mode. */
    readonly isInForce: boolean | undefined
  }
  /** State of each policy file: `in-force`, `last-good`, `rejected`. */
  policyFiles(): Iterable<{ readonly state: string }>
  /** The same of files of endpoints and resources. */
  recordFiles(): Iterable<{ readonly state: string }>
  mode(): string
  limits(): readonly LimitUse[]
  /** Milliseconds since each kind of source was heard. */
  readonly sourceAges?:
    { ages(): Iterable<readonly [kind: string, milliseconds: number]> } | undefined
  /** Texts of files that are kept over restarts; those over the bound are not. */
  readonly fileTexts?: (() => { readonly tooLong: number }) | undefined
  /** Undefined where nothing is kept over restarts. */
  readonly state?: KeptStateSource | undefined
}

export interface KeptStateSource {
  readonly use: {
    readonly generation: number
    readonly imageOctets: number
    readonly journalOctets: number
    /** Seconds since the disk took something. */
    readonly age: number
    /** Whether a restart would find less than there is: the disk refused or lost something. */
    readonly isFailing: boolean
    /** Why the folder is another daemon's, which names it; undefined when it is ours. */
    readonly taken?: string | undefined
    /** Why settings made at run time are not on the disk; undefined: they are. */
    readonly settingsFault?: string | undefined
    /** Files that were passed over at the start, each until it is written again. */
    readonly damage: readonly string[]
    /** By cause. */
    readonly faults: Readonly<Record<string, number>>
  }
}

export type PipelineCounters = Counters<
  | 'queries'
  | 'allowed'
  | 'denied'
  | 'audited'
  | 'unknownClients'
  | 'unmanaged'
  | 'interfaceMismatch'
  | 'notReady'
  | 'malformedQueries'
  | 'overloaded'
  | 'passedOver'
  | 'answers'
  | 'malformedAnswers'
  | 'failedTimeout'
  | 'failedSocket'
  | 'orphaned'
  | 'exact'
  | 'degraded'
  | 'heldOut'
  | 'heldOutServfail'
  | 'heldOutDropped'
  | 'heldOutReleased'
>

export interface UpstreamSource {
  readonly counters: Counters<
    | 'forwarded'
    | 'refusedFull'
    | 'refusedClientFull'
    | 'answers'
    | 'timeouts'
    | 'socketFailures'
    | 'unexpected'
    | 'mismatched'
    | 'late'
    | 'coalesced'
  >
  readonly attempts: {
    readonly counters: Counters<'retries' | 'retriesDenied' | 'mismatchRepeats' | 'repeatsDenied'>
  }
  readonly waits: { readonly counters: Counters<'sentUdp' | 'sentTcp' | 'unsendable'> }
  readonly pool: {
    readonly servers: readonly { readonly address: string; readonly port: number }[]
    readonly failures: Uint32Array
    readonly answers: Float64Array
    readonly failed: Float64Array
    readonly first: number
    readonly rtt: { readonly means: Float64Array }
    isDown(server: number): boolean
    readonly counters: Counters<'failovers' | 'downs' | 'ups'>
  }
  readonly probes: { readonly sent: Float64Array }
  readonly links: {
    readonly asked: {
      readonly open: number
      readonly counters: Counters<'opened' | 'closed' | 'refused'>
    }
  }
  readonly inFlight: { readonly count: number }
  readonly udp: readonly {
    readonly counters: Counters<
      | 'open'
      | 'opened'
      | 'portsTaken'
      | 'openFailures'
      | 'sendsDropped'
      | 'socketErrors'
      | 'kernelDrops'
    >
  }[]
  readonly tcp: readonly {
    readonly counters: Counters<'open' | 'opened' | 'faults' | 'closedIdle' | 'sendsDropped'>
  }[]
}

export type UdpCounters = Counters<
  | 'received'
  | 'sent'
  | 'ignoredSources'
  | 'oversized'
  | 'socketErrors'
  | 'sendsDropped'
  | 'kernelDrops'
>

export type TcpCounters = Counters<
  | 'accepted'
  | 'open'
  | 'received'
  | 'sent'
  | 'refusedFull'
  | 'refusedClientFull'
  | 'evicted'
  | 'closedIdle'
  | 'closedIncomplete'
  | 'closedSlowReader'
  | 'readsPaused'
  | 'answersDropped'
  | 'socketErrors'
>

/** The sum of one counter over several parts. */
export function sumOf<Name extends string>(
  parts: readonly { readonly counters: Counters<Name> }[],
  name: Name,
): number {
  return parts.reduce((sum, { counters }) => sum + counters[name], 0)
}
