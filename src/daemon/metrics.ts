// Defines the metrics of the daemon in one table: name, help text, label, and where the value is read. To add a metric, count where the
// event happens and add a row here. `/metrics` and docs/reference/metrics.md are made from this table. Label values come from closed lists,
// from the configuration or from the endpoints, never from a packet. So a client can neither make `/metrics` longer nor write into it.

import type { Histogram } from '../core/tables/histogram.ts'
import {
  DNS_VERDICTS,
  PACKET_VERDICTS,
  type EndpointVerdicts,
} from '../flows/record/endpoint-verdicts.ts'
import { formatServer } from '../proxy/upstream/server-pool.ts'
import type { Labelled, MetricTable } from '../telemetry/metric-table.ts'
import type { FileState, MetricsSources } from './metrics-sources.ts'

const MS_PER_SECOND = 1000
const OTHER_ENDPOINTS = '(other)'
const FILE_STATES = ['in-force', 'last-good', 'rejected'] as const
const MODES = ['enforce', 'audit', 'bypass'] as const

export const METRICS: MetricTable<MetricsSources> = {
  // Queries and answers
  dns_queries_total: {
    help: 'Queries from clients, by verdict. audited and unmanaged queries count as allowed; passed_over got no answer because their client was at its bound',
    label: 'verdict',
    read: ({ proxy }) => ({
      allowed: proxy.admission.counters.allowed,
      denied: proxy.admission.counters.denied,
      unknown_client: proxy.admission.counters.unknownClients,
      interface_mismatch: proxy.admission.counters.interfaceMismatch,
      not_ready: proxy.admission.counters.notReady,
      malformed: proxy.admission.counters.malformedQueries,
      overloaded: proxy.admission.counters.overloaded,
      passed_over: proxy.admission.counters.passedOver,
    }),
  },
  dns_servers_refused_total: {
    help: 'Queries that were denied because of the server that the client chose: policy does not admit the server, or the server is untrusted',
    label: 'reason',
    read: ({ proxy }) => ({
      policy: proxy.judge.counters.serverDenied,
      untrusted: proxy.judge.counters.serverUntrusted,
    }),
  },
  dns_queries_audited_total: {
    help: 'Queries that policy denied and audit let pass. They also count as allowed',
    read: ({ proxy }) => proxy.admission.counters.audited,
  },
  dns_udp_messages_total: {
    help: 'Messages on the UDP listeners, by event. kernel_drop: the kernel dropped the message because the receive buffer was full',
    label: 'event',
    read: ({ proxy }) => ({
      received: sumOf(proxy.listeners.udp, 'received'),
      sent: sumOf(proxy.listeners.udp, 'sent'),
      ignored_source: sumOf(proxy.listeners.udp, 'ignoredSources'),
      oversized: sumOf(proxy.listeners.udp, 'oversized'),
      send_dropped: sumOf(proxy.listeners.udp, 'sendsDropped'),
      socket_error: sumOf(proxy.listeners.udp, 'socketErrors'),
      kernel_drop: sumOf(proxy.listeners.udp, 'kernelDrops'),
    }),
  },
  dns_queries_unmanaged_total: {
    help: 'Queries of unknown clients that were forwarded because unknown-clients.then is allow-unmanaged. They also count as allowed',
    read: ({ proxy }) => proxy.admission.counters.unmanaged,
  },
  unknown_client_queries_waiting: {
    help: 'Queries that wait until their client becomes a known endpoint',
    read: ({ proxy }) => proxy.unknown.waiting,
  },
  unknown_client_queries_total: {
    help: 'Queries of unknown clients, by result. over_bound: the query did not wait because of a bound',
    label: 'result',
    read: ({ proxy }) => ({
      became_known: proxy.unknown.counters.becameKnown,
      timed_out: proxy.unknown.counters.timedOut,
      over_bound:
        proxy.unknown.counters.refusedFull +
        proxy.unknown.counters.refusedClientFull +
        proxy.unknown.counters.refusedLong,
    }),
  },
  dns_prewarm_total: {
    help: 'Questions of dns.prewarm for exact names of policies, by event. unanswered: no answer with an address came',
    label: 'event',
    read: ({ proxy }) => ({
      asked: proxy.prewarm?.counters.asked ?? 0,
      answered: proxy.prewarm?.counters.answered ?? 0,
      unanswered: proxy.prewarm?.counters.unanswered ?? 0,
    }),
  },
  dns_prewarm_left_out: {
    help: 'Questions that dns.prewarm does not ask because its bound is reached',
    read: ({ proxy }) => proxy.prewarm?.counters.leftOut ?? 0,
  },
  dns_answers_total: {
    help: 'Answers from upstream, by outcome. orphaned: the endpoint was removed or replaced before the answer came',
    label: 'outcome',
    read: ({ proxy }) => ({
      exact: proxy.settlement.counters.exact,
      degraded: proxy.settlement.counters.degraded,
      held_out: proxy.settlement.counters.heldOut,
      malformed: proxy.settlement.counters.malformedAnswers,
      orphaned: proxy.settlement.counters.orphaned,
    }),
  },
  dns_failures_total: {
    help: 'Queries that no upstream answered, by reason',
    label: 'reason',
    read: ({ proxy }) => ({
      timeout: proxy.settlement.counters.failedTimeout,
      socket: proxy.settlement.counters.failedSocket,
    }),
  },
  dns_answer_addresses_total: {
    help: 'Addresses in answers from which namegate learns, by result. guarded and over_bound addresses were not learned',
    label: 'result',
    read: ({ proxy }) => {
      const { addresses, guarded, overBound } = proxy.learner.counters
      return { learned: addresses - guarded - overBound, guarded, over_bound: overBound }
    },
  },
  dns_answers_truncated_total: {
    help: 'Answers over UDP that were shortened to the size that the client accepts',
    read: ({ proxy }) => proxy.responder.counters.truncated,
  },
  dns_answers_stripped_total: {
    help: 'Answers from which namegate tried to remove addresses, by result. failed: the message was unreadable or became too long, and the client got SERVFAIL',
    label: 'result',
    read: ({ proxy }) => ({
      stripped: proxy.stripping.counters.stripped,
      failed: proxy.stripping.counters.failed,
    }),
  },
  dns_stripped_total: {
    help: 'Parts removed from answers: addresses, address hints, unreadable SVCB and HTTPS records, and signatures over these',
    label: 'part',
    read: ({ proxy }) => ({
      address: proxy.stripping.taken.addresses,
      hint: proxy.stripping.taken.hints,
      unreadable: proxy.stripping.taken.unreadable,
      signature: proxy.stripping.taken.signatures,
    }),
  },
  dns_answers_waiting: {
    help: 'Answers that are held until the datapath confirms their addresses. They also count as queries in flight',
    read: ({ proxy }) => proxy.releases.count,
  },
  dns_answers_held_total: {
    help: 'Answers that had to wait for the datapath. begun: held; overdue: held for all of dns.hold.limit; over_bound: not held because of a bound',
    label: 'wait',
    read: ({ proxy }) => ({
      begun: proxy.releases.counters.held,
      overdue: proxy.releases.counters.overdue,
      over_bound: proxy.releases.counters.overBound,
    }),
  },
  dns_answers_held_out_total: {
    help: 'Answers with the outcome held_out, by what the client got (dns.hold.on-limit): SERVFAIL, nothing, or the answer',
    label: 'result',
    read: ({ proxy }) => ({
      servfail: proxy.settlement.counters.heldOutServfail,
      drop: proxy.settlement.counters.heldOutDropped,
      release: proxy.settlement.counters.heldOutReleased,
    }),
  },
  dns_query_seconds: {
    help: 'Time from the admission of a query to the release of its answer, by outcome. failed: no usable answer came from upstream',
    label: 'outcome',
    times: ({ proxy: { settlement } }) => [
      ['exact', settlement.times.exact],
      ['degraded', settlement.times.degraded],
      ['held_out', settlement.times.heldOut],
      ['failed', settlement.times.failed],
    ],
  },
  dns_hold_seconds: {
    help: 'Time for which queries and answers were held, by stage. endpoint: a query waited until its client was a known endpoint; datapath: an answer waited until the datapath confirmed its addresses; order: an answer waited for an earlier answer to the same endpoint about the same name',
    label: 'stage',
    times: ({ proxy: { unknown, releases } }) => [
      ['endpoint', unknown.times],
      ['datapath', releases.times.datapath],
      ['order', releases.times.order],
    ],
  },

  // Towards the servers
  upstream_queries_sent_total: {
    help: 'Messages sent to servers, by transport. All attempts and repetitions of a query are counted',
    label: 'transport',
    read: ({ proxy }) => ({
      udp: proxy.upstream.waits.counters.sentUdp,
      tcp: proxy.upstream.waits.counters.sentTcp,
    }),
  },
  upstream_queries_total: {
    help: 'Forwarded queries, by how they ended',
    label: 'end',
    read: ({ proxy }) => ({
      answered: proxy.upstream.counters.answers,
      timeout: proxy.upstream.counters.timeouts,
      socket_failure: proxy.upstream.counters.socketFailures,
    }),
  },
  upstream_attempts_total: {
    help: 'Attempts after the first, by cause. *_denied: a bound prevented the attempt; unsendable: no socket, id or route was available',
    label: 'cause',
    read: ({ proxy }) => ({
      retry: proxy.upstream.attempts.counters.retries,
      retry_denied: proxy.upstream.attempts.counters.retriesDenied,
      mismatch: proxy.upstream.attempts.counters.mismatchRepeats,
      mismatch_denied: proxy.upstream.attempts.counters.repeatsDenied,
      unsendable: proxy.upstream.waits.counters.unsendable,
    }),
  },
  upstream_coalesced_total: {
    help: 'Queries that were not sent because the same client had already asked the same question. They got a copy of its answer',
    read: ({ proxy }) => proxy.upstream.counters.coalesced,
  },
  upstream_messages_dropped_total: {
    help: 'Messages from servers that were dropped. unexpected: wrong id; mismatched: another question; late: nothing waits for the answer any more, or a probe was answered',
    label: 'reason',
    read: ({ proxy }) => ({
      unexpected: proxy.upstream.counters.unexpected,
      mismatched: proxy.upstream.counters.mismatched,
      late: proxy.upstream.counters.late,
    }),
  },
  upstream_queries_in_flight: {
    help: 'Queries that wait for the answer of a server',
    read: ({ proxy }) => proxy.upstream.inFlight.count,
  },
  upstream_server_up: {
    help: '1 while the configured server is up, 0 while it is down. A server that is down gets probes, and gets queries only while all servers are down',
    label: 'server',
    read: ({ proxy }) => byServer(proxy, (i) => (proxy.upstream.pool.isDown(i) ? 0 : 1)),
  },
  upstream_server_first: {
    help: '1 for the configured server that new queries ask first, 0 for the others',
    label: 'server',
    read: ({ proxy }) => byServer(proxy, (i) => (i === proxy.upstream.pool.first ? 1 : 0)),
  },
  upstream_server_rtt_seconds: {
    help: 'Smoothed time until the configured server answers. 0 before its first answer',
    label: 'server',
    read: ({ proxy }) =>
      byServer(proxy, (i) => Math.max(0, proxy.upstream.pool.rtt.means[i]!) / 1000),
  },
  upstream_round_trip_seconds: {
    help: 'Time from a message to its answer, by configured server. Late answers and answers to probes count too. chosen: all servers that clients chose',
    label: 'server',
    times: ({ proxy }) => roundTrips(proxy),
  },
  upstream_server_failures: {
    help: 'Failed attempts at the configured server since its last answer',
    label: 'server',
    read: ({ proxy }) => byServer(proxy, (i) => proxy.upstream.pool.failures[i]!),
  },
  upstream_server_answers_total: {
    help: 'Answers of the configured server, including late answers and answers to probes',
    label: 'server',
    read: ({ proxy }) => byServer(proxy, (i) => proxy.upstream.pool.answers[i]!),
  },
  upstream_server_failed_attempts_total: {
    help: 'Attempts at the configured server whose answer was overdue, or that ended with an error',
    label: 'server',
    read: ({ proxy }) => byServer(proxy, (i) => proxy.upstream.pool.failed[i]!),
  },
  upstream_server_probes_total: {
    help: 'Probes sent to the configured server: one at the start, then only while it fails (from its first failed attempt until its next answer)',
    label: 'server',
    read: ({ proxy }) => byServer(proxy, (i) => proxy.upstream.probes.sent[i]!),
  },
  upstream_server_changes_total: {
    help: 'Changes of configured servers. down: marked down; up: came back; failover: another server became the first',
    label: 'change',
    read: ({ proxy }) => ({
      down: proxy.upstream.pool.counters.downs,
      up: proxy.upstream.pool.counters.ups,
      failover: proxy.upstream.pool.counters.failovers,
    }),
  },
  upstream_asked_servers: {
    help: 'Links to servers that clients chose themselves',
    read: ({ proxy }) => proxy.upstream.links.asked.open,
  },
  upstream_asked_servers_total: {
    help: 'Links to servers that clients chose themselves, by event. refused: the bound of links was reached',
    label: 'event',
    read: ({ proxy }) => ({
      opened: proxy.upstream.links.asked.counters.opened,
      closed: proxy.upstream.links.asked.counters.closed,
      refused: proxy.upstream.links.asked.counters.refused,
    }),
  },
  upstream_sockets: {
    help: 'Open sockets towards servers, by transport',
    label: 'transport',
    read: ({ proxy }) => ({
      udp: sumOf(proxy.upstream.udp, 'open'),
      tcp: sumOf(proxy.upstream.tcp, 'open'),
    }),
  },
  upstream_socket_events_total: {
    help: 'Events on sockets towards servers',
    label: 'event',
    read: ({ proxy }) => ({
      udp_opened: sumOf(proxy.upstream.udp, 'opened'),
      udp_open_failed: sumOf(proxy.upstream.udp, 'openFailures'),
      udp_port_taken: sumOf(proxy.upstream.udp, 'portsTaken'),
      udp_error: sumOf(proxy.upstream.udp, 'socketErrors'),
      udp_send_dropped: sumOf(proxy.upstream.udp, 'sendsDropped'),
      udp_kernel_drop: sumOf(proxy.upstream.udp, 'kernelDrops'),
      tcp_opened: sumOf(proxy.upstream.tcp, 'opened'),
      tcp_fault: sumOf(proxy.upstream.tcp, 'faults'),
      tcp_closed_idle: sumOf(proxy.upstream.tcp, 'closedIdle'),
      tcp_send_dropped: sumOf(proxy.upstream.tcp, 'sendsDropped'),
    }),
  },

  // TCP connections of clients
  tcp_connections: {
    help: 'Open TCP connections of clients',
    read: ({ proxy }) => proxy.listeners.tcp.counters.open,
  },
  tcp_connections_total: {
    help: 'TCP connections of clients, by result. full and client_full: refused, because all connections, or all of that client, were busy',
    label: 'result',
    read: ({ proxy }) => ({
      accepted: proxy.listeners.tcp.counters.accepted,
      full: proxy.listeners.tcp.counters.refusedFull,
      client_full: proxy.listeners.tcp.counters.refusedClientFull,
    }),
  },
  tcp_connections_closed_total: {
    help: 'TCP connections of clients that namegate closed, by reason. evicted: an idle connection made room for a new one',
    label: 'reason',
    read: ({ proxy }) => ({
      evicted: proxy.listeners.tcp.counters.evicted,
      idle: proxy.listeners.tcp.counters.closedIdle,
      incomplete_message: proxy.listeners.tcp.counters.closedIncomplete,
      slow_reader: proxy.listeners.tcp.counters.closedSlowReader,
    }),
  },
  tcp_messages_total: {
    help: 'DNS messages over TCP. dropped: the connection had ended before the answer',
    label: 'event',
    read: ({ proxy }) => ({
      received: proxy.listeners.tcp.counters.received,
      sent: proxy.listeners.tcp.counters.sent,
      dropped: proxy.listeners.tcp.counters.answersDropped,
    }),
  },
  tcp_reads_paused_total: {
    help: 'Pauses in reading a TCP connection because too many of its queries were unanswered, or the client did not read its answers',
    read: ({ proxy }) => proxy.listeners.tcp.counters.readsPaused,
  },
  tcp_socket_errors_total: {
    help: 'Errors of TCP connections, and errors when accepting them',
    read: ({ proxy }) => proxy.listeners.tcp.counters.socketErrors,
  },

  // Names, prefixes, identities
  names: { help: 'Names learned from answers', read: ({ core }) => core.names.names.slots.used },
  name_mappings: {
    help: '(name, address) mappings learned from answers',
    read: ({ core }) => core.names.mappings.slots.used,
  },
  name_pairs: {
    help: '(endpoint, name, address) entries learned from answers',
    read: ({ core }) => core.names.entries.slots.used,
  },
  name_pairs_expired_total: {
    help: 'Entries whose TTL and grace had ended. kept: the entry stays because a connection to its address is open',
    label: 'result',
    read: ({ core }) => ({ forgotten: core.expiry.forgotten, kept: core.expiry.kept }),
  },
  name_expired_uses_total: {
    help: 'Entries whose endpoint connected to the address after the TTL of the name had ended. Such a client ignores TTLs',
    read: ({ core }) => core.expiry.expiredUses,
  },
  names_refused_total: {
    help: 'Addresses of answers that were not learned, or got no labels, because a bound was reached',
    read: ({ core }) => core.names.boundHits,
  },
  ipcache_prefixes: {
    help: 'Prefixes in the IPCache',
    read: ({ core }) => core.ipcache.prefixes.slots.used,
  },
  ipcache_facts: {
    help: 'Facts (prefix, owner) in the IPCache',
    read: ({ core }) => core.ipcache.facts.slots.used,
  },
  ipcache_conflicts_total: {
    help: 'Conflicts in which two owners gave one label key of a prefix different values',
    read: ({ core }) => core.ipcache.conflicts,
  },
  identities: {
    help: 'Identities in use, by kind. dynamic: created by answers; static: created by the configuration',
    label: 'kind',
    read: ({ core }) => ({
      static: core.allocator.inUse - core.allocator.dynamicInUse,
      dynamic: core.allocator.dynamicInUse,
    }),
  },
  identities_allocated_total: {
    help: 'Identities that were created',
    read: ({ core }) => core.allocator.allocations,
  },
  identity_fallbacks_total: {
    help: 'Label sets that got an identity with fewer fqdn labels because a bound was reached',
    read: ({ core }) => core.allocator.fallbacks,
  },
  label_sets: { help: 'Different label sets', read: ({ core }) => core.labelSets.size },

  // Policy, endpoints and their files
  policies: { help: 'Policies in force', read: ({ policies }) => policies.policies.length },
  policy_files: {
    help: 'Policy files, by state. last-good: has faults, its last good version is in force; rejected: has faults, nothing of it is in force',
    label: 'state',
    read: ({ sources }) => countStates(sources.policyFiles),
  },
  record_files: {
    help: 'Files of endpoints and resources, by state. last-good: has faults, its last good version is in force; rejected: has faults, nothing of it is in force',
    label: 'state',
    read: ({ sources }) => countStates(sources.recordFiles),
  },
  policy_revision: {
    help: 'Revision of the policies. desired: loaded by the daemon; realized: enforced by the datapath',
    label: 'state',
    read: ({ policies, transition }) => ({
      desired: policies.revision,
      realized: transition.realizedRevision,
    }),
  },
  selectors: { help: 'Selectors in use', read: ({ core }) => core.selectors.size },
  empty_deny_peers: {
    help: 'Peers of deny rules that select nothing, so the rule denies nothing for them',
    read: ({ emptyDenies }) => emptyDenies.texts.length,
  },
  endpoints: { help: 'Known endpoints', read: ({ endpoints }) => endpoints.registry.size },
  endpoints_open: {
    help: 'Endpoints that can send everything, because no policy selects them and default-egress is allow. Endpoints whose own label namegate.io/default-egress allows this do not count',
    read: ({ endpoints, policies }) =>
      [...endpoints.registry].filter((each) => policies.isLeftOpen(each)).length,
  },
  endpoint_dns_queries_total: {
    help: 'DNS decisions by endpoint. audited: policy denied the query and audit let it pass, so its answer counts too; failed: no server answered; refused: namegate refused the query for another reason than policy. Endpoints over the bound share (other)',
    labels: ['endpoint', 'verdict'],
    pairs: ({ flows }) => byEndpoint(flows.verdicts, 'dns', DNS_VERDICTS),
  },
  endpoint_packets_reported_total: {
    help: 'Packets that the datapath reported, by endpoint. The datapath reports a limited number in a second; datapath_events_total counts all packets. Endpoints over the bound share (other)',
    labels: ['endpoint', 'verdict'],
    pairs: ({ flows }) => byEndpoint(flows.verdicts, 'packets', PACKET_VERDICTS),
  },
  endpoint_series_left_out: {
    help: 'Endpoints whose counts are in the series (other), because 1,000 endpoints have series of their own',
    read: ({ flows }) => flows.verdicts.leftOut,
  },
  policy_entries_refused_total: {
    help: 'Identities that found no room for all their entries in a full policy map',
    read: ({ core }) => core.policyMaps.overflows,
  },
  source_age_seconds: {
    help: 'Time since every configured path of the source could last be read, by kind of source; collections: every collection of the cluster. 0 while all can be read',
    label: 'source',
    read: ({ sources }) => [...sources.ages.ages()].map(([kind, ms]) => [kind, ms / MS_PER_SECOND]),
  },

  // The cluster
  kubernetes_collection_age_seconds: {
    help: 'Time since the objects of the kind were known to be current. -1: never',
    label: 'kind',
    read: ({ cluster }) => cluster?.collections.map(({ kind, age }) => [kind, age] as const),
  },
  kubernetes_collection_state: {
    help: 'State of each collection: 1 for the present state. held: a mass removal is held',
    labels: ['kind', 'state'],
    pairs: ({ cluster }) =>
      (cluster?.collections ?? []).map(({ kind, state }) => [kind, state, 1] as const),
  },
  kubernetes_objects: {
    help: 'Objects that are known, by kind',
    label: 'kind',
    read: ({ cluster }) =>
      cluster?.collections.map(({ kind, objects }) => [kind, objects] as const),
  },
  kubernetes_faulty_objects: {
    help: 'Objects with faults, whose last good version is in force, by kind',
    label: 'kind',
    read: ({ cluster }) => cluster?.collections.map(({ kind, faulty }) => [kind, faulty] as const),
  },
  kubernetes_held_policies: {
    help: 'Policies that the cluster does not have any more, and that stay in force for a while, by kind',
    label: 'kind',
    read: ({ cluster }) => cluster?.collections.map(({ kind, held }) => [kind, held] as const),
  },
  kubernetes_pods_left_out: {
    help: 'Pods of this node that are not endpoints, by reason',
    label: 'reason',
    read: ({ cluster }) => cluster?.leftOut,
  },
  kubernetes_enforcement_seconds: {
    help: 'Time from a change of pods or policies in the cluster until the datapath enforces it. Changes that come into force together count once, from the oldest. A removed policy counts from the end of its delay',
    label: 'kind',
    times: ({ cluster }) =>
      cluster
        ? [
            ['pod', cluster.times.pod],
            ['policy', cluster.times.policy],
          ]
        : [],
  },
  kubernetes_requests_total: {
    help: 'Requests to the API server, by the status of the answer; lost: no whole answer came',
    label: 'code',
    read: ({ cluster }) => cluster?.counts('requests'),
  },
  kubernetes_lists_total: {
    help: 'Lists of collections that were begun, by cause. Each cause but start and appeared follows a failure',
    label: 'cause',
    read: ({ cluster }) => cluster?.counts('lists'),
  },
  kubernetes_events_total: {
    help: 'Events about policies with faults that this node sent, by result. refused: the server takes no such Event; forbidden: a right is missing; failed: no answer, or a fault of the server',
    label: 'result',
    read: ({ cluster }) => cluster?.events && Object.entries(cluster.events.counts),
  },

  // The datapath, repair and interception
  datapath_events_total: {
    help: 'Verdicts, drops and writes that the datapath counted, by event',
    label: 'event',
    read: ({ core }) => core.datapath.reports.counters(),
  },
  datapath_flows_adopted_total: {
    help: 'Connections that existed before their endpoint was enforced. taken: allowed for datapath.adopt-existing; no_room: the table was full',
    label: 'result',
    read: ({ adoption }) => ({
      taken: adoption.counters.flows,
      no_room: adoption.counters.notTaken,
    }),
  },
  datapath_mode: {
    help: '1 for the mode that is in force, 0 for the others',
    label: 'mode',
    read: ({ mode }) => MODES.map((each) => [each, each === mode.now ? 1 : 0]),
  },
  datapath_revision: {
    help: 'Revision that the datapath has confirmed: the number of commits that changed something',
    read: ({ core }) => core.committer.revision,
  },
  datapath_desired_revision: {
    help: 'Revision that will contain every change up to now. It is above datapath_revision while a commit is in progress',
    read: ({ core }) => core.committer.desired,
  },
  datapath_commit_under_way_seconds: {
    help: 'Age of the commit that is in progress. 0 while there is none',
    read: ({ core }) => core.committer.watch.underWayMs / MS_PER_SECOND,
  },
  datapath_commit_seconds: {
    help: 'Time that the datapath took for a commit',
    times: ({ core }) => core.committer.watch.times,
  },
  datapath_stalls_total: {
    help: 'Commits that took longer than one second',
    read: ({ core }) => core.committer.watch.stalls,
  },
  datapath_refused_entries: {
    help: 'Entries that the datapath refuses at present',
    read: ({ core }) => core.committer.refused,
  },
  datapath_refusals_total: {
    help: 'Refusals of entries by the datapath. Each retry counts again',
    read: ({ core }) => core.committer.failures,
  },
  datapath_verified_total: {
    help: 'Comparisons of all entries in the kernel with the wanted entries',
    read: ({ repair }) => repair?.counters.walks ?? 0,
  },
  datapath_repaired_entries_total: {
    help: 'Entries that another program changed or deleted, and that namegate restored',
    read: ({ repair }) => repair?.counters.repaired ?? 0,
  },
  intercept_repairs_total: {
    help: 'Repairs of interception rules and routes that another program had removed',
    read: ({ interception }) => interception.counters.repairs,
  },
  intercept_in_force: {
    help: '1 while interception rules bring queries to the listeners, 0 while they do not. Absent without a tproxy or redirect listener',
    read: ({ interception: { isInForce } }) =>
      isInForce === undefined ? undefined : Number(isInForce),
  },

  // Bounds
  limit_use: {
    help: 'Present use of each bound, in the unit of the bound',
    label: 'limit',
    read: ({ limits }) =>
      limits.flatMap(({ limit, use }) => (use === undefined ? [] : [[limit, use]])),
  },
  limit_bound: {
    help: 'Value of each bound, in its own unit',
    label: 'limit',
    read: ({ limits }) => limits.map(({ limit, bound }) => [limit, bound]),
  },
  limit_hits_total: {
    help: 'Hits of each bound: how often there would have been more than the bound',
    label: 'limit',
    read: ({ limits }) => limits.map(({ limit, hits }) => [limit, hits]),
  },

  // Flows kept outside of the process
  flow_kinds: {
    help: 'Different flows that namegate remembers in order to count repetitions',
    read: ({ keptFlows }) => keptFlows?.remembered,
  },
  flow_lines_total: {
    help: 'Lines about flows that were written, by output',
    label: 'output',
    read: ({ keptFlows }) => keptFlows?.lines(),
  },
  flow_lines_refused_total: {
    help: 'Lines about flows that were not written because the output had no room, by output',
    label: 'output',
    read: ({ keptFlows }) => keptFlows?.refused(),
  },
  flows_lost_total: {
    help: 'Flows that no line reports: there were too many different ones, or newer flows overwrote them before they were read',
    read: ({ keptFlows }) => keptFlows?.lost,
  },
  flow_write_failures_total: {
    help: 'Failed writes of flows to disk. namegate retries them',
    read: ({ keptFlows }) => keptFlows?.failed,
  },

  // What is kept over restarts
  state_source_files_not_kept: {
    help: 'Files in force (policies, endpoints, resources) whose text is too long to be saved for a restart',
    read: ({ sources, state }) => state && (sources.fileTexts?.tooLong ?? 0),
  },
  state_bytes: {
    help: 'Size of the saved state, by file. image: everything at one moment; journal: the changes since then',
    label: 'file',
    read: ({ state }) =>
      state && { image: state.use.imageOctets, journal: state.use.journalOctets },
  },
  state_generation: {
    help: 'Generation of the newest file of the saved state',
    read: ({ state }) => state?.use.generation,
  },
  state_write_age_seconds: {
    help: 'Time since the last successful write to the saved state',
    read: ({ state }) => state?.use.age,
  },
  state_faults_total: {
    help: 'Failed writes to the saved state, by cause',
    label: 'cause',
    read: ({ state }) => state?.use.faults,
  },

  // The web page
  page_viewers: { help: 'Viewers of the web page', read: ({ page }) => page.viewers },
  page_viewers_stalled_total: {
    help: 'Viewers of the web page that were disconnected because they did not read',
    read: ({ page }) => page.stalled,
  },
  page_requests_refused_total: {
    help: 'Requests that the web page refused, by reason. token: without a token, or with a wrong one; guesses: after too many wrong tokens; origin: from another site; busy: more viewers or searches than there is room for',
    label: 'reason',
    read: ({ page }) => page.refused,
  },

  // The program
  ready: {
    help: '1 while the daemon is ready, 0 while it is not. namegate status has the reasons',
    read: ({ notReady }) => (notReady.length === 0 ? 1 : 0),
  },
  own_files_put_back_total: {
    help: 'Sockets and files of the daemon that another program removed, and that the daemon created again',
    label: 'file',
    read: ({ putBack }) => putBack?.counts,
  },
  build_info: {
    help: 'Always 1. The label is the version of namegate',
    label: 'version',
    read: ({ version }) => ({ [version]: 1 }),
  },
}

/** One value per configured server. The label is the server's address and port: `9.9.9.9:53`, `[2620:fe::fe]:53`. */
function byServer(
  { upstream }: MetricsSources['proxy'],
  valueOf: (server: number) => number,
): Labelled {
  return upstream.pool.servers.map((server, i) => [formatServer(server), valueOf(i)])
}

function* byEndpoint(
  verdicts: EndpointVerdicts,
  part: 'dns' | 'packets',
  names: readonly string[],
): Iterable<readonly [endpoint: string, verdict: string, n: number]> {
  for (const counts of verdicts.read())
    for (const [i, n] of counts[part].entries())
      yield [counts.name ?? OTHER_ENDPOINTS, names[i] ?? '', n]
}

function roundTrips({
  upstream: { pool },
}: MetricsSources['proxy']): (readonly [string, Histogram])[] {
  return pool.roundTrips.map((times, i) => {
    const server = pool.servers[i]
    return [server === undefined ? 'chosen' : formatServer(server), times]
  })
}

function countStates(files: Iterable<FileState>): Labelled {
  const states = [...files].map(({ state }) => state)
  return FILE_STATES.map((state) => [state, states.filter((each) => each === state).length])
}

/** Adds up one counter of several parts. */
function sumOf<Name extends string>(
  parts: readonly { readonly counters: Readonly<Record<Name, number>> }[],
  name: Name,
): number {
  return parts.reduce((sum, { counters }) => sum + counters[name], 0)
}
