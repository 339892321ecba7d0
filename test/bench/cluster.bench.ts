// A cluster with 10,000 CiliumNetworkPolicies, 5,000 namespaces and 500 pods on this node, over the memory datapath. Puts the first lists in
// force, then changes policies one after the other, each from its event until all is in force. The same changes with 10 policies are the
// comparison. Then pods of other nodes change, of 10 and of 20,000. Events come without a server, so requests are not measured.

import { setImmediate as turn } from 'node:timers/promises'
import { configFromObject } from '../../src/config/load.ts'
import { RandomPool, systemRandom } from '../../src/core/random.ts'
import { Daemon } from '../../src/daemon/daemon.ts'
import { COLLECTIONS, type Collection } from '../../src/kubernetes/reflector/collections.ts'
import { Kubernetes } from '../../src/kubernetes/kubernetes.ts'
import type { KubernetesObject } from '../../src/kubernetes/reflector/objects.ts'
import { loadPolicyObjects } from '../../src/policy/load/load.ts'
import { SILENT } from '../../src/telemetry/silent.ts'
import { runBench, type Figure } from './support/bench.ts'
import { residentOctets } from './support/process.ts'
import { mkMemory } from './support/world.ts'

const NAMES = 5
const PODS = 500
const PEERS = 20_000
const CHANGES = 40
const silent = () => ({ cancel() {} })
const SILENT_API = { get: silent, watch: silent, change: silent, close() {} }

function collectionOf(kind: string): Collection {
  const found = COLLECTIONS.find((each) => each.kind === kind)
  if (found === undefined) throw new Error(`Cannot find the collection of ${kind}`)
  return found
}

const [POD, NAMESPACE, POLICY, PEER] = ['Pod', 'Namespace', 'CiliumNetworkPolicy', 'Peer'].map(
  collectionOf,
)

function metadataOf(name: string, namespace?: string) {
  return { name, uid: name, resourceVersion: '1', ...(namespace && { namespace }) }
}

/** Each policy selects the pods of its namespace, so each pod has the same number of policies. */
function policy(i: number, namespaces: number, version: number): KubernetesObject {
  const toFQDNs = Array.from({ length: NAMES }, (_, n) => {
    return { matchPattern: `*.n${n}.p${i}.v${n === 0 ? version : 0}.test` }
  })
  const ports = [{ port: '443', protocol: 'TCP' }]
  return {
    metadata: metadataOf(`p${i}`, `ns${i % namespaces}`),
    spec: { endpointSelector: {}, egress: [{ toFQDNs, toPorts: [{ ports }] }] },
  }
}

function pod(i: number, namespaces: number): KubernetesObject {
  const ip = `10.1.${i >> 8}.${i & 255}`
  return {
    metadata: { ...metadataOf(`pod${i}`, `ns${i % namespaces}`), labels: { app: `a${i}` } },
    spec: {},
    status: { podIP: ip },
  }
}

/** A pod of another node. Ten of them share their labels. Each version has another address. */
function peer(i: number, namespaces: number, version: number): KubernetesObject {
  const ip = `10.${2 + version}.${i >> 8}.${i & 255}`
  const labels = { app: `a${Math.trunc(i / 10)}`, 'pod-template-hash': `${i}` }
  return {
    metadata: { ...metadataOf(`peer${i}`, `ns${i % namespaces}`), labels },
    spec: {},
    status: { podIP: ip },
  }
}

class Subject {
  readonly daemon: Daemon
  readonly #cluster: Kubernetes
  readonly #policies: number
  readonly #namespaces: number

  constructor(policies: number, namespaces: number) {
    this.#policies = policies
    this.#namespaces = namespaces
    const config = configFromObject({
      listeners: [{ address: '127.0.0.1', port: 0, mode: 'explicit' }],
      upstreams: { servers: ['127.0.0.1:9'] },
      policies: { paths: [] },
      endpoints: { files: [] },
      limits: { endpoints: 1000 },
      kubernetes: { peers: 'watch' },
    })
    this.daemon = new Daemon({
      config,
      log: SILENT,
      datapath: mkMemory(),
      openCluster: ({ clock, onChange }) =>
        new Kubernetes({
          config: config.kubernetes!,
          clock,
          log: SILENT,
          random: new RandomPool(systemRandom),
          api: SILENT_API,
          server: '',
          node: 'n',
          peersMax: config.limits.peers,
          keeper: undefined,
          parsePolicy: (document, name) => {
            const { policies: items, faults } = loadPolicyObjects(document, name)
            return { items, faults }
          },
          interfaceOf: ({ octets }) => `v${octets[2]}-${octets[3]}`,
          onChange,
        }),
    })
    this.#cluster = this.daemon.cluster!
    const { sources } = this.daemon
    sources.load()
    sources.apply()
    sources.start()
  }

  /** Milliseconds from the first list until all is in force. */
  async load(): Promise<number> {
    const { objects } = this.#cluster
    const many = <Item>(count: number, make: (i: number) => Item): Item[] =>
      Array.from({ length: count }, (_, i) => make(i))
    const namespaces = many(this.#namespaces, (i) => ({ metadata: metadataOf(`ns${i}`) }))
    const policies = many(this.#policies, (i) => policy(i, this.#namespaces, 0))
    const pods = many(PODS, (i) => pod(i, this.#namespaces))
    const began = performance.now()
    objects.list(NAMESPACE!, undefined, namespaces)
    objects.list(POLICY!, undefined, policies)
    objects.list(POD!, undefined, pods)
    for (const collection of COLLECTIONS) objects.settle(collection)
    await this.#inForce(0)
    return performance.now() - began
  }

  /** Milliseconds from the event of a changed policy until all is in force. */
  async change(i: number, version: number): Promise<number> {
    const { revision } = this.daemon.policies
    const began = performance.now()
    this.#cluster.objects.change(POLICY!, policy(i, this.#namespaces, version))
    await this.#inForce(revision)
    return performance.now() - began
  }

  /** Milliseconds from the list of pods of other nodes until all is in force. */
  async loadPeers(count: number): Promise<number> {
    const peers = Array.from({ length: count }, (_, i) => peer(i, this.#namespaces, 0))
    return await this.#committed(() => this.#cluster.objects.list(PEER!, undefined, peers))
  }

  /** Milliseconds from the event of a pod of another node until its new address is in force. */
  async changePeer(i: number, version: number): Promise<number> {
    const changed = peer(i, this.#namespaces, version)
    return await this.#committed(() => this.#cluster.objects.change(PEER!, changed))
  }

  async #committed(act: () => void): Promise<number> {
    const { transition, core } = this.daemon
    const { revision } = core.committer
    const began = performance.now()
    act()
    const { peers } = this.#cluster.objects
    while (peers.hasMore || core.committer.revision === revision || transition.pending) await turn()
    return performance.now() - began
  }

  stop(): void {
    this.daemon.stop()
  }

  async #inForce(before: number): Promise<void> {
    const { policies, transition, endpoints } = this.daemon
    while (policies.revision === before || endpoints.registry.size < PODS) await turn()
    while (transition.pending) await turn()
  }
}

async function medianOfChanges(
  change: (n: number) => Promise<number>,
): Promise<Figure['spread'] & object> {
  const times: number[] = []
  for (let n = 1; n <= CHANGES; n++) times.push(await change(n))
  times.sort((a, b) => a - b)
  return [times[CHANGES >> 1] ?? NaN, times.at(-1) ?? NaN]
}

async function run(): Promise<readonly Figure[]> {
  const small = new Subject(10, 10)
  await small.load()
  const [few] = await medianOfChanges(async (n) => await small.change(n % 10, n))
  await small.loadPeers(10)
  const [fewPeers] = await medianOfChanges(async (n) => await small.changePeer(n % 10, n))
  small.stop()
  const large = new Subject(10_000, 5000)
  const load = await large.load()
  const resident = await residentOctets()
  const [many, worst] = await medianOfChanges(async (n) => await large.change(n % 10, n))
  const loadPeers = await large.loadPeers(PEERS)
  const withPeers = await residentOctets()
  const [manyPeers, worstPeer] = await medianOfChanges(
    async (n) => await large.changePeer(n * 7, n),
  )
  large.stop()
  return [
    { name: 'first lists in force', value: load / 1000, unit: 's' },
    { name: 'resident after it', value: resident / 1e6, unit: 'MB' },
    { name: 'a changed policy of 10 in force', value: few, unit: 'ms' },
    { name: 'a changed policy of 10,000 in force', value: many, unit: 'ms', spread: [many, worst] },
    { name: 'list of 20,000 pods of other nodes in force', value: loadPeers / 1000, unit: 's' },
    { name: 'resident after it', value: withPeers / 1e6, unit: 'MB' },
    { name: 'a changed pod of 10 of other nodes in force', value: fewPeers, unit: 'ms' },
    {
      name: 'a changed pod of 20,000 of other nodes in force',
      value: manyPeers,
      unit: 'ms',
      spread: [manyPeers, worstPeer],
    },
  ]
}

await runBench({ name: 'cluster', about: '10,000 policies, 5,000 namespaces, 500 pods', run })
