// The objects and requests of the admin API as types. Made from the OpenAPI document by `npm run reference`; edit src/admin/ instead.

export type Endpoint = {
  readonly id: number
  readonly name: string
  /** The path of the file that describes the endpoint, or the name of its object, such as `kubernetes:Pod/shop/web-0`. */
  readonly origin: string
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

export type Policy = {
  /** Empty for a rejected file, in which no policy could be read. */
  readonly name: string
  /** Null for a clusterwide policy. */
  readonly namespace: string | null
  readonly kind: string | null
  readonly file: string
  /** How many endpoints the policy selects. */
  readonly endpoints: number
  readonly selectors: readonly string[]
  /** Selectors for names that have matched no answered name since they came into force. */
  readonly unseen: readonly string[]
  /** True if the annotation namegate.io/audit of the policy is set, so that the policy denies nothing. */
  readonly audited: boolean
  readonly state: 'in-force' | 'last-good' | 'rejected'
  /** One line `file:line:column: message` per fault. */
  readonly error: string | null
}

export type Selector = {
  readonly selector: string
  /** `named` selects, for each endpoint with `default-egress: allow-named`, what this endpoint learned. */
  readonly kind: 'fqdn' | 'cidr' | 'endpoints' | 'named'
  readonly identities: readonly number[]
  /** How many known names the selector matches. 0 for a CIDR. */
  readonly names: number
  /** True if the selector has matched an answered name since it came into force. Null if it is not for names. */
  readonly seen: boolean | null
  readonly policies: readonly string[]
}

export type Name = {
  readonly name: string
  readonly endpoint: string
  readonly selectors: readonly string[]
  readonly addresses: readonly {
    readonly address: string
    /** End of the TTL. */
    readonly expires: string
    readonly state: 'live' | 'grace' | 'connected'
  }[]
}

export type Prefix = {
  readonly prefix: string
  readonly identity: number
  readonly labels: readonly string[]
  readonly owners: readonly {
    readonly kind: string
    readonly name: string
    readonly labels: readonly string[]
  }[]
  /** The only endpoint for which this row applies. Absent if the row applies to the whole node. */
  readonly endpoint?: string
}

export type Identity = {
  readonly id: number
  readonly labels: readonly string[]
  readonly references: number
  readonly preallocated: boolean
}

export type Resource = {
  readonly name: string
  readonly addresses: readonly string[]
  readonly labels: readonly string[]
  readonly origin: 'file' | 'api'
  /** Null if the resource has no end. */
  readonly expires: string | null
}

export type ResourceChange = {
  readonly name: string
  /** False if the resource was the same before, except perhaps for its end. */
  readonly changed: boolean
  /** Null if the resource has no end, or was removed. */
  readonly expires: string | null
  /** Revision of the datapath that contains the change. */
  readonly revision: number
  /** Entries that the datapath refuses at present. */
  readonly refused: number
}

export type Entry = {
  readonly map: 'ng_mode' | 'ng_ipcache' | 'ng_policy' | 'ng_endpoints' | 'ng_source' | 'ng_adopted'
  readonly key: string
  readonly value: string
}

export type Verify = {
  readonly differences: readonly {
    readonly map:
      | 'ng_mode'
      | 'ng_ipcache'
      | 'ng_policy'
      | 'ng_endpoints'
      | 'ng_source'
      | 'ng_adopted'
      | 'tc'
      | 'cgroup'
      | 'netfilter'
      | 'ng_config'
      | 'ng_gate'
      | 'ng_listeners'
    readonly key: string
    /** Null if the entry should not exist. */
    readonly want: string | null
    /** Null if the entry does not exist. */
    readonly have: string | null
  }[]
}

export type Status = {
  readonly health: 'ok' | 'degraded'
  readonly ready: boolean
  readonly notReady: readonly string[]
  readonly version: string
  /** Path of the configuration file. Null without a file. */
  readonly config: string | null
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
  /** For people. Null if no listener has the mode tproxy or redirect. */
  readonly interception: string | null
  /** True while the rules of interception are in force. Null if no listener has the mode tproxy or redirect. */
  readonly intercepting: boolean | null
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
  /** Null without `kubernetes` in the configuration. */
  readonly kubernetes: {
    readonly server: string
    /** The version of the API server. Empty before its first answer. */
    readonly version: string
    readonly collections: readonly {
      readonly kind: string
      readonly state: 'listing' | 'watching' | 'away' | 'absent' | 'forbidden' | 'held'
      /** Empty while all is well. */
      readonly reason: string
      readonly objects: number
      /** Objects with faults, whose last good version is in force. */
      readonly faulty: number
      /** Policies that the cluster does not have any more, and that are in force for a while. */
      readonly held: number
      /** Seconds since the objects were known to be current. -1: never. */
      readonly age: number
    }[]
    /** Pods of this node that are no endpoints, by reason. */
    readonly leftOut: Readonly<Record<string, number>>
    readonly unknownPods: {
      /** Why this node does not know pods of other nodes. Empty: it knows them all. */
      readonly reason: string
      /** Policies that select such pods. */
      readonly policies: readonly {
        readonly policy: string
        /** True: a rule allows such pods, which stay closed. */
        readonly allows: boolean
        /** True: a rule denies such pods, which stay open if a rule allows them. */
        readonly denies: boolean
      }[]
    }
    readonly events: {
      /** `standby`: another node writes Events about policies, or no node. */
      readonly state: 'off' | 'standby' | 'writing' | 'forbidden'
      /** The node that writes. Empty: no node, or not known. */
      readonly writer: string
      /** Empty while all is well. */
      readonly reason: string
    }
  } | null
  readonly audited: {
    /** True while audit is set for the node, an endpoint or a policy. */
    readonly on: boolean
    /** Queries that policy denied and audit let pass, since the start. */
    readonly queries: number
    /** Packets that policy denied and audit let pass, since the start. The datapath reports a limited number in a second. */
    readonly packets: number
    /** The ten endpoints with the most. */
    readonly endpoints: readonly {
      readonly name: string
      readonly queries: number
      readonly packets: number
    }[]
  }
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

export type Top = {
  readonly time: string
  /** The time that was counted. Less than the window if the daemon no longer has the flows of the whole window. */
  readonly seconds: number
  readonly flows: number
  readonly verdicts: {
    readonly allow: number
    readonly deny: number
    readonly audit: number
    readonly error: number
    readonly event: number
  }
  /** Names of questions. */
  readonly names: readonly {
    readonly name: string
    readonly flows: number
    readonly refused: number
  }[]
  readonly endpoints: readonly {
    /** Null for clients that are no known endpoint. */
    readonly endpoint: string | null
    readonly flows: number
    readonly refused: number
  }[]
  /** Equal refusals, and what audit allowed. */
  readonly refusals: readonly {
    readonly count: number
    /** Time of the last of these flows. */
    readonly last: string
    readonly endpoint: string | null
    /** For example `A www.example.com` or `TCP 198.51.100.9:443`. */
    readonly what: string
    /** Names of the peer of a packet. */
    readonly names: readonly string[]
    readonly reason: string | null
    readonly rules: readonly FlowRule[]
  }[]
}

export type OwnAnswer = {
  readonly answer: string | null
}

export type Explanation = {
  readonly verdict: 'allow' | 'deny' | 'audit'
  readonly reason: string
  readonly rules: readonly {
    readonly policy: string
    readonly file: string
    readonly line: number
    readonly action: 'allow' | 'deny' | 'pass'
    /** The tier of a ClusterNetworkPolicy, and its priority. */
    readonly tier?: string
    /** The name of the rule. */
    readonly name?: string
  }[]
  readonly selectors: readonly string[]
  readonly identities: readonly number[]
  readonly labels: readonly string[]
  readonly default: {
    readonly egress: string
    readonly policies: readonly string[]
    readonly audited: readonly string[]
  }
  readonly nearest: {
    readonly policy: string
    readonly file: string
    readonly line: number
    readonly missing: string
  } | null
  /** A line that would allow what was asked, and the allow-list to add it to. */
  readonly add: {
    readonly file: string
    readonly text: string
  } | null
  readonly notes: readonly string[]
}

export type AuditResult = {
  /** Null if the setting was reset. */
  readonly on: boolean | null
  readonly mode: 'enforce' | 'audit' | 'bypass'
  /** Known endpoints to which the setting applies. */
  readonly endpoints: readonly string[]
}

export type ModeResult = {
  readonly mode: 'enforce' | 'audit' | 'bypass'
}

export type Source = {
  readonly origin: 'files' | 'kubernetes'
  /** For example `policies`, or `CiliumNetworkPolicy`. */
  readonly kind: string
  readonly state:
    | 'read'
    | 'silent'
    | 'listing'
    | 'watching'
    | 'away'
    | 'absent'
    | 'forbidden'
    | 'held'
  readonly objects: number
  /** Files or objects with faults, whose last good version is in force. */
  readonly faulty: number
  /** Policies that a cluster does not have any more, and that are in force for a while. */
  readonly held: number
  /** Seconds since the source was known to be current. -1: never. */
  readonly age: number
  /** Empty while all is well. */
  readonly reason: string
}

export type Placed = {
  /** `namespace/name`. */
  readonly endpoint: string
  readonly enforced: true
}

export type Displaced = {
  readonly endpoint: string
}

export type Accepted = {
  /** How many policies were removed. */
  readonly removed: number
}

export type Detached = {
  readonly detached: true
}

export type Problem = {
  /** `urn:namegate:problem:` and a word, for programs. */
  readonly type: string
  /** What the type means. */
  readonly title: string
  /** The HTTP status. */
  readonly status: number
  /** What happened this time. */
  readonly detail: string
  /** The path of the request. */
  readonly instance: string
  /** Each fault of the input. `file`, `line` and `column` are present for faults of files. */
  readonly faults?: readonly {
    readonly message: string
    readonly file?: string
    readonly line?: number
    readonly column?: number
  }[]
  /** The same text as `detail`. */
  readonly error: string
}

export type ResourceBody = {
  readonly addresses: readonly string[]
  readonly labels?: Readonly<Record<string, string>>
  readonly ports?: Readonly<Record<string, string>>
  /** For example `12h`. If absent, the resource stays until it is removed. */
  readonly ttl?: string
}

export type Question = {
  readonly endpoint: string
  /** Name that the endpoint asks for. */
  readonly ask?: string
  /** `ADDRESS:PORT` of the server that it asks. */
  readonly server?: string
  /** `UDP` or `TCP`. */
  readonly protocol?: string
  /** Name by whose addresses the endpoint connects. */
  readonly name?: string
  /** Address to which the endpoint connects. */
  readonly address?: string
  /** For example `443/TCP`. */
  readonly port?: string
}

export type OwnQuestion = {
  readonly endpoint: string
  /** DNS message in base64. */
  readonly query: string
  /** `UDP` or `TCP`. */
  readonly protocol?: string
  /** `ADDRESS:PORT`, where the endpoint chooses its server. */
  readonly server?: string
}

export type Place = {
  readonly namespace: string
  readonly name: string
  /** Empty if the network plugin does not know it. */
  readonly uid: string
  /** The host side of the veth of the pod. */
  readonly interface: string
  /** Without prefix lengths. */
  readonly addresses: readonly string[]
}

export type Displace = {
  readonly namespace: string
  readonly name: string
  readonly uid: string
}

export type Mode = {
  readonly mode: 'enforce' | 'audit' | 'bypass' | 'pinned'
}

export type Audit = {
  readonly scope: 'node' | 'endpoint' | 'selector' | 'all'
  /** Null takes back what was set at run time. */
  readonly on: boolean | null
  /** Name of the endpoint, with scope `endpoint`. */
  readonly name?: string
  /** Labels, with scope `selector`. */
  readonly matchLabels?: Readonly<Record<string, string>>
}

export type FlowRule = {
  /** `namespace/name`. A clusterwide policy has only a name. */
  readonly policy: string
  readonly file: string
  /** Absent for an allow-list, which refuses what none of its lines allows. */
  readonly line?: number
}

export type DnsFlow = {
  /** What was decided about the query. */
  readonly kind:
    | 'forwarded'
    | 'answered'
    | 'denied'
    | 'audited'
    | 'unknown-client'
    | 'interface-mismatch'
    | 'not-ready'
    | 'malformed'
    | 'overloaded'
    | 'upstream-failed'
  readonly verdict: 'allow' | 'deny' | 'audit' | 'error' | 'event'
  /** The name that the endpoint had when the flow was recorded. Null when the client was no known endpoint. */
  readonly endpoint: string | null
  /** Labels that the endpoint has, or had when it was removed. Empty when `endpoint` is null. */
  readonly endpointLabels: readonly string[]
  /** Address of the client, or `namegate` for a question of namegate itself, by `ask --as` or `dns.prewarm`. */
  readonly client: string
  /** Null when newer flows have overwritten the name. */
  readonly name: string | null
  readonly type: string
  /** The code of the server's answer. Null when no server answered. */
  readonly rcode: string | null
  readonly outcome: string | null
  /** How many addresses namegate learned from the answer. */
  readonly addresses: number
  /** What was wrong with the query, which bound was hit, or how the upstream failed. `server` and `sources-silent`: why the query was denied although policy allows the name. Null for other flows. */
  readonly reason: string | null
  /** Rules that denied the name, or would have denied it without audit. Empty when no policy denies it. */
  readonly rules: readonly FlowRule[]
}

export type PacketFlow = {
  /** `audit`: the packet would have been dropped without audit. */
  readonly kind: 'drop' | 'audit'
  readonly verdict: 'allow' | 'deny' | 'audit' | 'error' | 'event'
  /** The name that the endpoint had when the flow was recorded. Null when the client was no known endpoint. */
  readonly endpoint: string | null
  /** Labels that the endpoint has, or had when it was removed. Empty when `endpoint` is null. */
  readonly endpointLabels: readonly string[]
  readonly peer: string
  readonly protocol: string
  readonly port: number
  readonly identity: number
  /** Labels of the peer's identity. */
  readonly labels: readonly string[]
  /** The first few names by which the peer was known at that time. */
  readonly names: readonly string[]
  /** A name of the peer that the endpoint asked, and that had expired at that time. Null if `names` is not empty, or if none is remembered. */
  readonly expiredName: string | null
  /** True if the peer is a guarded address: an answer with it opens nothing. */
  readonly guarded: boolean
  /** `rule`: a deny rule, which no allow rule can outweigh. `default`: no rule allows the packet. Null for other reasons. */
  readonly deniedBy: 'rule' | 'default' | null
  /** Rules that denied the packet, or would have denied it without audit. If no rule allows it, the policies that turned default deny on. Empty when there is none. */
  readonly rules: readonly FlowRule[]
  readonly reason: string
}

export type PolicyLost = {
  /** The endpoint lost its last policy. */
  readonly kind: 'policy-lost'
  readonly verdict: 'allow' | 'deny' | 'audit' | 'error' | 'event'
  /** The name that the endpoint had when the flow was recorded. Null when the client was no known endpoint. */
  readonly endpoint: string | null
  /** Labels that the endpoint has, or had when it was removed. Empty when `endpoint` is null. */
  readonly endpointLabels: readonly string[]
  readonly policies: string
}

export type ExpiredUse = {
  /** The endpoint connected to an address after the TTL of the name. */
  readonly kind: 'expired-use'
  readonly verdict: 'allow' | 'deny' | 'audit' | 'error' | 'event'
  /** The name that the endpoint had when the flow was recorded. Null when the client was no known endpoint. */
  readonly endpoint: string | null
  /** Labels that the endpoint has, or had when it was removed. Empty when `endpoint` is null. */
  readonly endpointLabels: readonly string[]
  /** The address to which the endpoint connected. */
  readonly peer: string
  /** The name whose TTL was over. Empty when newer flows have overwritten the name. */
  readonly names: readonly string[]
  /** Seconds from the end of the TTL until the connection was seen. */
  readonly expired: number
}

export type LostFlows = {
  /** Flows that came too fast to be kept. */
  readonly kind: 'lost'
  readonly verdict: 'event'
  readonly endpoint: null
}

export type FlowFacts = DnsFlow | PacketFlow | PolicyLost | ExpiredUse

export type Flow = {
  /** The first flow after the start of the daemon has number 0. */
  readonly number: number
  readonly time: string
} & FlowFacts

export type KeptFlow = {
  /** Time of the first of these flows. */
  readonly time: string
  /** Time of the last of these flows. */
  readonly last: string
  /** How many equal flows the line stands for. */
  readonly count: number
  /** Name of the host. */
  readonly node: string
} & (FlowFacts | LostFlows)

/** Every request: its options, and its `answer`, or the `row` of which its answer has many. */
export interface Operations {
  /** Lists the endpoints: the workloads to which policy applies. */
  readonly 'GET /v1/endpoints': {
    readonly answer: readonly Endpoint[]
    readonly row: Endpoint
  }
  /** Lists the policies, with the state of their files. */
  readonly 'GET /v1/policies': {
    readonly answer: readonly Policy[]
    readonly row: Policy
  }
  /** Lists the selectors in use, with the identities that each selects. */
  readonly 'GET /v1/selectors': {
    readonly answer: readonly Selector[]
    readonly row: Selector
  }
  /** Lists the names learned from answers, by endpoint. */
  readonly 'GET /v1/names': {
    readonly query?: {
      /** Only what this endpoint learned, and its own addresses. */
      readonly endpoint?: string
      /** Only this name, or names that match this pattern, as in policies. */
      readonly name?: string
      /** Only addresses in this prefix, and prefixes that overlap it. */
      readonly prefix?: string
    }
    readonly answer: readonly Name[]
    readonly row: Name
  }
  /** Lists the prefixes, with their identities, labels and owners. */
  readonly 'GET /v1/ipcache': {
    readonly query?: {
      /** Only what this endpoint learned, and its own addresses. */
      readonly endpoint?: string
      /** Only this name, or names that match this pattern, as in policies. */
      readonly name?: string
      /** Only addresses in this prefix, and prefixes that overlap it. */
      readonly prefix?: string
    }
    readonly answer: readonly Prefix[]
    readonly row: Prefix
  }
  /** Lists the identities in use. */
  readonly 'GET /v1/identities': {
    readonly query?: {
      /** Only what this endpoint learned, and its own addresses. */
      readonly endpoint?: string
      /** Only this name, or names that match this pattern, as in policies. */
      readonly name?: string
      /** Only addresses in this prefix, and prefixes that overlap it. */
      readonly prefix?: string
    }
    readonly answer: readonly Identity[]
    readonly row: Identity
  }
  /** Lists the external resources. */
  readonly 'GET /v1/resources': {
    readonly answer: readonly Resource[]
    readonly row: Resource
  }
  /** Lists the sources of policies, endpoints and resources, with their ages. */
  readonly 'GET /v1/sources': {
    readonly answer: readonly Source[]
    readonly row: Source
  }
  /** Lists the entries that the datapath enforces at present. */
  readonly 'GET /v1/datapath': {
    readonly answer: readonly Entry[]
    readonly row: Entry
  }
  /** Returns the state of the daemon. */
  readonly 'GET /v1/status': {
    readonly query?: {
      /** Wait until the datapath enforces this policy revision. `wanted`: the newest one. */
      readonly realized?: string
      /** Wait at most so many milliseconds. By default 60000. */
      readonly timeout?: number
    }
    readonly answer: Status
  }
  /** Lists the differences between the wanted entries and those of the datapath. */
  readonly 'GET /v1/verify': {
    readonly answer: Verify
  }
  /** Returns the latest flows, one in each line. Values of one filter are alternatives, and a flow must match every filter. A filter that can match no flow is refused. */
  readonly 'GET /v1/flows': {
    readonly query?: {
      /** `1`: continue with new flows. */
      readonly follow?: '1'
      /** Only the last so many flows that match. */
      readonly last?: number
      /** Only flows of the last time, such as 10m or 24h. */
      readonly since?: string
      /** Only flows of the endpoint with this name. The endpoint must exist. */
      readonly endpoint?: readonly string[]
      /** Only flows with this name, or with a name that matches this pattern, as in policies: the name of a question, or a name of the peer of a packet. */
      readonly name?: readonly string[]
      /** Only flows whose client or peer has this address or is in this prefix. */
      readonly address?: readonly string[]
      /** Only packets to this port, or to a range of ports such as 8000-8100. */
      readonly port?: readonly string[]
      /** Only packets of tcp, udp, sctp, icmp, icmpv6 or a protocol number. `dns`: only DNS decisions. */
      readonly protocol?: readonly string[]
      /** Only flows with this verdict or kind. */
      readonly verdict?: readonly string[]
      /** Leaves out the flows that `endpoint` selects. */
      readonly 'not-endpoint'?: readonly string[]
      /** Leaves out the flows that `name` selects. */
      readonly 'not-name'?: readonly string[]
      /** Leaves out the flows that `address` selects. */
      readonly 'not-address'?: readonly string[]
      /** Leaves out the flows that `port` selects. */
      readonly 'not-port'?: readonly string[]
      /** Leaves out the flows that `protocol` selects. */
      readonly 'not-protocol'?: readonly string[]
      /** Leaves out the flows that `verdict` selects. */
      readonly 'not-verdict'?: readonly string[]
    }
    readonly row: Flow
  }
  /** Returns the flows kept on disk, one in each line, in the order in which they were written. Equal flows are one line with a count and the times of the first and last, written up to an hour after the first. */
  readonly 'GET /v1/flows/kept': {
    readonly query?: {
      /** `1`: only those that began before the flows of /v1/flows. */
      readonly older?: '1'
    }
    readonly row: KeptFlow
  }
  /** Counts recent flows by verdict, name and endpoint, and equal refusals. */
  readonly 'GET /v1/top': {
    readonly query?: {
      /** Count the flows of this time, such as 10m. By default 60s. */
      readonly window?: string
      /** Each list has at most so many rows. By default 20. */
      readonly rows?: number
    }
    readonly answer: Top
  }
  /** Returns this document. */
  readonly 'GET /v1/openapi.json': {
    readonly answer: Readonly<Record<string, unknown>>
  }
  /** Turns audit on or off. */
  readonly 'POST /v1/audit': {
    readonly body: Audit
    readonly answer: AuditResult
  }
  /** Sets the mode of the datapath. */
  readonly 'POST /v1/mode': {
    readonly body: Mode
    readonly answer: ModeResult
  }
  /** Explains why an endpoint can or cannot ask for a name, or connect. */
  readonly 'POST /v1/explain': {
    readonly body: Question
    readonly answer: Explanation
  }
  /** Sends a DNS query in the name of an endpoint, and learns addresses from its answer. */
  readonly 'POST /v1/ask': {
    readonly body: OwnQuestion
    readonly answer: OwnAnswer
  }
  /** Notes where a network plugin put a pod. The response comes when the policies of the pod are in force. */
  readonly 'POST /v1/kubernetes/place': {
    readonly body: Place
    readonly answer: Placed
  }
  /** Notes that a network plugin removes a pod. */
  readonly 'POST /v1/kubernetes/displace': {
    readonly body: Displace
    readonly answer: Displaced
  }
  /** Removes the policies that a cluster has lost and that are held in force. */
  readonly 'POST /v1/kubernetes/accept': {
    readonly answer: Accepted
  }
  /** Removes all enforcement and ends the daemon. */
  readonly 'POST /v1/detach': {
    readonly query?: {
      /** `1`: also remove the rules of interception, while the daemon still answers queries. */
      readonly interception?: '1'
    }
    readonly answer: Detached
  }
  /** Returns an external resource. */
  readonly 'GET /v1/resources/{name}': {
    readonly path: {
      /** Name of the resource. */
      readonly name: string
    }
    readonly answer: Resource
  }
  /** Adds or changes an external resource. The response comes when the resource is in force and saved. */
  readonly 'PUT /v1/resources/{name}': {
    readonly path: {
      /** Name of the resource. */
      readonly name: string
    }
    readonly headers?: {
      /** Change only this version, which an ETag names. `*`: change only what exists. */
      readonly 'If-Match'?: string
      /** `*`: change nothing that exists. */
      readonly 'If-None-Match'?: string
    }
    readonly body: ResourceBody
    readonly answer: ResourceChange
  }
  /** Removes an external resource. */
  readonly 'DELETE /v1/resources/{name}': {
    readonly path: {
      /** Name of the resource. */
      readonly name: string
    }
    readonly headers?: {
      /** Change only this version, which an ETag names. `*`: change only what exists. */
      readonly 'If-Match'?: string
    }
    readonly answer: ResourceChange
  }
}
