import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { METRICS } from '../../src/daemon/metrics.ts'
import type { MetricsSources } from '../../src/daemon/metrics-sources.ts'
import { Metrics } from '../../src/telemetry/metrics.ts'
import { mkSources, readExposition, type Exposed } from '../support/nodes/metrics.ts'
import { mkEndpoint, mkPolicies, Node } from '../support/nodes/node.ts'

function mkNode(): Node {
  const node = new Node()
  node.setEndpoints([mkEndpoint('shop', ['10.0.0.1'])])
  return node
}

async function expose(t: TestContext, sources: MetricsSources): Promise<Exposed> {
  const metrics = new Metrics(METRICS, () => sources)
  t.after(() => metrics.stop())
  return readExposition(await metrics.expose())
}

test('Metrics have help, type and a sample each, in namegate_ names with their unit', async (t) => {
  const { help, types, samples } = await expose(t, mkSources(mkNode()))
  assert.ok(types.size > 40)
  for (const [name, type] of types) {
    assert.match(name, /^(?:namegate|process|nodejs)_/)
    assert.ok((help.get(name) ?? '').length > 5, `${name} has a help text`)
    assert.equal(type === 'counter', name.endsWith('_total'), `${name} is a ${type}`)
    const own = [...samples.keys()].filter((key) => metricOf(key, types) === name)
    assert.ok(own.length > 0, `${name} has a sample`)
  }
  for (const key of samples.keys()) assert.ok(types.has(metricOf(key, types)), key)
})

/** The metric of a sample. Samples of a histogram have a suffix after its name. */
function metricOf(key: string, types: ReadonlyMap<string, string>): string {
  const name = key.split('{')[0] ?? ''
  const base = name.replace(/_(?:bucket|sum|count)$/, '')
  return types.get(base) === 'histogram' ? base : name
}

test('Metrics read the counters as they are at the scrape', async (t) => {
  const node = mkNode()
  const sources = mkSources(node)
  const metrics = new Metrics(METRICS, () => sources)
  t.after(() => metrics.stop())
  const before = readExposition(await metrics.expose()).samples
  const rows: readonly (readonly [key: string, value: number, reason: string])[] = [
    ['namegate_dns_queries_total{verdict="denied"}', 42, 'a counter of the pipeline'],
    ['namegate_dns_answer_addresses_total{result="learned"}', 5, 'what is left of 10'],
    ['namegate_upstream_sockets{transport="udp"}', 2, 'a sum over servers'],
    ['namegate_upstream_server_failures{server="192.0.2.53:53"}', 7, 'by configured server'],
    ['namegate_upstream_server_up{server="192.0.2.53:53"}', 0, 'a server that is down'],
    ['namegate_upstream_server_rtt_seconds{server="192.0.2.53:53"}', 0.25, 'in seconds'],
    ['namegate_upstream_server_probes_total{server="192.0.2.53:53"}', 3, 'probes by server'],
    ['namegate_policy_files{state="last-good"}', 1, 'files by state'],
    ['namegate_policy_files{state="rejected"}', 0, 'a state that no file is in'],
    ['namegate_record_files{state="rejected"}', 1, 'and those of endpoints and resources'],
    ['namegate_datapath_mode{mode="enforce"}', 1, 'the mode that is set'],
    ['namegate_datapath_mode{mode="bypass"}', 0, 'one that is not'],
    ['namegate_limit_use{limit="pairs"}', 1, 'use of a bound'],
    ['namegate_limit_bound{limit="queries-in-flight-per-client"}', 4, 'a bound without use'],
    ['namegate_limit_hits_total{limit="pairs"}', 3, 'hits'],
    ['namegate_endpoints', 1, 'endpoints'],
    ['namegate_endpoints_open', 1, 'no policy selects it'],
    ['namegate_ready', 1, 'nothing prevents it'],
    ['namegate_endpoint_dns_queries_total{endpoint="shop",verdict="answered"}', 2, 'by endpoint'],
    ['namegate_endpoint_dns_queries_total{endpoint="shop",verdict="denied"}', 0, 'from the start'],
    ['namegate_endpoint_packets_reported_total{endpoint="shop",verdict="dropped"}', 1, 'packets'],
    ['namegate_endpoint_packets_reported_total{endpoint="(other)",verdict="dropped"}', 0, 'rest'],
    ['namegate_endpoint_series_left_out', 0, 'all have their own'],
    ['namegate_names', 0, 'no name yet'],
    ['namegate_build_info{version="1.2.3"}', 1, 'version'],
  ]
  for (const [key, value, reason] of rows) assert.equal(before.get(key), value, reason)
  assert.equal(before.has('namegate_limit_use{limit="queries-in-flight-per-client"}'), false)
  node.setPolicies(mkPolicies('egress: [{ toFQDNs: [{ matchPattern: "*.x" }] }]'))
  node.learn(node.endpoint('shop').id, 'a.x', ['192.0.2.1', '192.0.2.2'])
  const after = readExposition(await metrics.expose()).samples
  assert.equal(after.get('namegate_names'), 1)
  assert.equal(after.get('namegate_name_pairs'), 2)
  assert.equal(after.get('namegate_policy_revision{state="realized"}'), 1)
  assert.equal(after.get('namegate_endpoints_open'), 0, 'a policy selects it')
})

test('Metrics show histograms with cumulative buckets, in seconds', async (t) => {
  const { samples, types } = await expose(t, mkSources(mkNode()))
  const hold = 'namegate_dns_hold_seconds'
  const trip = 'namegate_upstream_round_trip_seconds'
  const rows: readonly (readonly [key: string, value: number, reason: string])[] = [
    [`${hold}_bucket{stage="datapath",le="0.0001"}`, 0, 'below the smallest hold'],
    [`${hold}_bucket{stage="datapath",le="0.00025"}`, 1, '0.2 ms'],
    [`${hold}_bucket{stage="datapath",le="0.005"}`, 2, 'a value at the bound of its bucket'],
    [`${hold}_bucket{stage="datapath",le="1"}`, 2, 'nothing between'],
    [`${hold}_bucket{stage="datapath",le="+Inf"}`, 3, 'all'],
    [`${hold}_count{stage="datapath"}`, 3, 'all'],
    [`${hold}_sum{stage="datapath"}`, 1.5052, 'seconds'],
    [`${hold}_count{stage="order"}`, 0, 'a stage without a hold'],
    [`${hold}_count{stage="endpoint"}`, 1, 'the wait of an unknown client'],
    [`${trip}_bucket{server="192.0.2.53:53",le="5"}`, 1, 'one of two answers within 5 s'],
    [`${trip}_count{server="192.0.2.53:53"}`, 2, 'a time above the last bound'],
    [`${trip}_count{server="chosen"}`, 0, 'servers that clients chose'],
    ['namegate_dns_query_seconds_bucket{outcome="exact",le="0.0025"}', 0, '3 ms is longer'],
    ['namegate_dns_query_seconds_bucket{outcome="exact",le="0.005"}', 1, '3 ms'],
    ['namegate_dns_query_seconds_count{outcome="failed"}', 0, 'no failure'],
    ['namegate_datapath_commit_seconds_count', 1, 'a histogram without a label of its own'],
  ]
  for (const [key, value, reason] of rows) assert.equal(samples.get(key), value, reason)
  assert.equal(types.get(hold), 'histogram')
})

test('Metrics show what is kept over restarts, and no sample without a state folder', async (t) => {
  const faults = { 'no-space': 2, other: 0 }
  const use = {
    generation: 7,
    imageOctets: 1000,
    journalOctets: 50,
    age: 3,
    isFailing: false,
    damage: [],
    faults,
  }
  const { samples } = await expose(t, mkSources(mkNode(), { state: { use } }))
  const rows: readonly (readonly [key: string, value: number])[] = [
    ['namegate_state_bytes{file="image"}', 1000],
    ['namegate_state_bytes{file="journal"}', 50],
    ['namegate_state_generation', 7],
    ['namegate_state_write_age_seconds', 3],
    ['namegate_state_faults_total{cause="no-space"}', 2],
    ['namegate_state_faults_total{cause="other"}', 0],
  ]
  for (const [key, value] of rows) assert.equal(samples.get(key), value, key)
  const without = await expose(t, mkSources(mkNode()))
  assert.ok([...without.samples.keys()].every((key) => !key.includes('_state_')))
})

test('Metrics leave intercept_in_force out where no listener intercepts', async (t) => {
  const rows: readonly (readonly [isInForce: boolean | undefined, value: number | undefined])[] = [
    [undefined, undefined],
    [false, 0],
    [true, 1],
  ]
  for (const [isInForce, value] of rows) {
    const interception = { counters: { repairs: 0 }, isInForce }
    const { samples } = await expose(t, mkSources(mkNode(), { interception }))
    assert.equal(samples.get('namegate_intercept_in_force'), value)
  }
})

test('Metrics never show a name or an address of a client, and quote the names of endpoints', async (t) => {
  const hostile = ['evil\\010namegate_x\\0321.example', 'a\\034\\125.example', 'x'.repeat(60)]
  const node = new Node()
  node.setEndpoints([mkEndpoint('shop"} 1\nnamegate_evil', ['10.99.0.1'])])
  node.setPolicies(mkPolicies('egress: [{ toFQDNs: [{ matchPattern: "*" }] }]'))
  const sources = mkSources(node)
  const quiet = await expose(t, sources)
  const { id } = node.endpoint('shop"} 1\nnamegate_evil')
  for (const name of hostile) node.learn(id, name, ['203.0.113.77'])
  const { samples } = await expose(t, sources)
  const own = (exposed: ReadonlyMap<string, number>) =>
    [...exposed.keys()].filter((key) => key.startsWith('namegate_'))
  assert.deepEqual(own(samples), own(quiet.samples), 'the same series')
  const quoted = String.raw`endpoint="shop\"} 1\nnamegate_evil"`
  const rest = [...samples.keys()].map((key) => key.replace(quoted, 'endpoint=""'))
  assert.doesNotMatch(rest.join('\n'), /evil|shop|203\.0\.113|10\.99/)
  assert.equal(samples.get(`namegate_endpoint_dns_queries_total{${quoted},verdict="answered"}`), 2)
})

test('Metrics of the process are plausible', async (t) => {
  const sources = mkSources(mkNode())
  const metrics = new Metrics(METRICS, () => sources)
  t.after(() => metrics.stop())
  await metrics.expose()
  const { samples } = readExposition(await metrics.expose())
  const value = (key: string) => samples.get(key) ?? -1
  const atLeast: readonly (readonly [key: string, least: number, reason: string])[] = [
    ['process_resident_memory_bytes', 10e6, 'Node.js needs more than 10 MB'],
    ['process_virtual_memory_bytes', value('process_resident_memory_bytes'), 'all of it'],
    ['process_heap_bytes', 1e6, 'the data segment'],
    ['process_cpu_user_seconds_total', 0.01, 'time since the start'],
    ['process_cpu_seconds_total', value('process_cpu_user_seconds_total'), 'with the kernel'],
    ['process_start_time_seconds', 1.7e9, 'seconds since the epoch'],
    ['process_open_fds', 3, 'the standard streams'],
    ['process_max_fds', value('process_open_fds'), 'the limit'],
    ['nodejs_heap_size_used_bytes', 1e6, 'the heap of JavaScript'],
    ['nodejs_heap_size_total_bytes', value('nodejs_heap_size_used_bytes'), 'all of the heap'],
    ['nodejs_heap_space_size_used_bytes{space="old"}', 1e5, 'one space of the heap'],
    ['nodejs_eventloop_lag_p50_seconds', 0, 'percentiles'],
    ['nodejs_eventloop_lag_max_seconds', 0, 'the longest delay'],
    ['nodejs_gc_duration_seconds_count{kind="minor"}', 0, 'garbage collections'],
    [`nodejs_version_info{version="${process.version}"}`, 1, 'version'],
  ]
  for (const [key, least, reason] of atLeast)
    assert.ok(value(key) >= least, `${key} ${value(key)} is at least ${least}: ${reason}`)
})
