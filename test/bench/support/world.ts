// A node's whole state over a chosen datapath, with policies as plain objects: the base of the benchmarks of learning,
// relabelling and memory. No files, no sockets.

import { CoreState } from '../../../src/enforcement/core-state.ts'
import { EndpointControl, type EndpointRecord } from '../../../src/enforcement/endpoint-control.ts'
import { PolicyControl } from '../../../src/enforcement/policy-control.ts'
import { Transition } from '../../../src/enforcement/transition.ts'
import { systemClock } from '../../../src/core/clock.ts'
import type { EndpointId } from '../../../src/core/ids.ts'
import { parsePrefix, type Prefix } from '../../../src/core/ip.ts'
import { makeLimits } from '../../../src/core/limits.ts'
import type { Datapath } from '../../../src/datapath/datapath.ts'
import { EbpfDatapath } from '../../../src/datapath/ebpf/adapter.ts'
import { detachAll } from '../../../src/datapath/ebpf/break-glass.ts'
import { MemoryDatapath } from '../../../src/datapath/memory/memory.ts'
import type { NameBounds } from '../../../src/names/eviction/eviction.ts'
import { isBuilt, loadBpf, loadPosix } from '../../../src/native/native.ts'
import { parseMatchPattern } from '../../../src/policy/match/pattern.ts'
import type { Policy, Rule } from '../../../src/policy/rule.ts'

export const PAIRS = 1_000_000
const POSITION = { file: 'bench', line: 1, column: 1 }

export interface World {
  readonly core: CoreState
  readonly policies: PolicyControl
  readonly endpoints: EndpointControl
  readonly transition: Transition
  readonly ids: readonly EndpointId[]
}

const IDLE = { tcpIdleMs: 21_600_000, udpIdleMs: 180_000 }

export function mkMemory(): MemoryDatapath {
  return new MemoryDatapath({ prefixesMax: PAIRS + 400_000, policyEntriesMax: 1_048_576 })
}

/** The eBPF datapath under its own pins, or undefined if it is not available. */
export function mkEbpf(): { readonly datapath: Datapath; remove(): void } | undefined {
  if (process.getuid?.() !== 0 || !isBuilt('bpf')) return undefined
  const bpf = loadBpf()
  const posix = loadPosix()
  const pinPath = `/sys/fs/bpf/ng-bench-${process.pid}`
  const bounds = { connectionsPerEndpoint: 65_536, connections: 524_288, endpointsMax: 10_000 }
  const shared = { bpf, posix, pinPath, isInUse: () => false, ...bounds, ...IDLE }
  const datapath = new EbpfDatapath(shared)
  return { datapath, remove: () => void detachAll(bpf, pinPath) }
}

export function mkWorld(
  datapath: Datapath,
  policies: readonly Policy[],
  endpoints = 1,
  bounds: Partial<NameBounds> = {},
): World {
  const restored = datapath.start()
  const core = new CoreState({
    clock: systemClock,
    datapath,
    restored,
    limits: {
      names: makeLimits({
        pairs: PAIRS,
        'addresses-per-name': PAIRS,
        'names-per-wildcard': PAIRS,
        'wildcard-names-per-endpoint': PAIRS,
        'names-per-address': PAIRS,
        'pairs-per-endpoint': PAIRS,
        ...bounds,
      }),
      dynamicIdentities: 4096,
      dynamicIdentitiesPerEndpoint: 4096,
      policyEntries: 16_384,
      configuredPrefixes: 400_000,
    },
    graceSeconds: 5,
    learning: 'node',
    nodeAddresses: [],
    protectedPrefixes: [],
  })
  const control = new PolicyControl({
    core,
    defaultEgress: 'deny',
    withoutDnsRules: 'allow',
    staticIdentitiesMax: 1_000_000,
  })
  const registry = new EndpointControl({
    core,
    policies: control,
    restored,
    nodeAddresses: [],
    endpointsMax: 10_000,
  })
  const transition = new Transition({ core, policies: control })
  control.setPolicies(policies, [])
  registry.apply(Array.from({ length: endpoints }, (_, i) => mkEndpoint(i)))
  transition.begin()
  transition.finish()
  const ids = [...registry.registry].map(({ id }) => id)
  return { core, policies: control, endpoints: registry, transition, ids }
}

/** The first of a world's endpoints. */
export function firstOf({ ids }: World): EndpointId {
  const [first] = ids
  if (first === undefined) throw new Error('Cannot learn: no endpoint')
  return first
}

function mkEndpoint(i: number): EndpointRecord {
  return {
    name: `endpoint-${i}`,
    addresses: [mkPrefix(`10.255.${i >> 8}.${i & 255}`)],
    labels: ['external:app=bench'],
    hook: { kind: 'none' },
    audit: false,
  }
}

export function mkPrefix(text: string): Prefix {
  const parsed = parsePrefix(text)
  if (parsed.kind === 'bad') throw new Error(parsed.reason)
  return parsed.prefix
}

/** One policy that allows TCP 443 to the names of these patterns. */
export function mkPolicy(name: string, patterns: readonly string[]): Policy {
  const rule: Rule = {
    action: 'allow',
    peers: {
      kind: 'selectors',
      selectors: patterns.map((text) => {
        const parsed = parseMatchPattern(text)
        if (parsed.kind === 'bad') throw new Error(parsed.reason)
        return { kind: 'fqdn', pattern: parsed.pattern }
      }),
    },
    toPorts: [{ ports: [{ protocol: 6, low: 443, high: 443 }], dns: undefined }],
    position: POSITION,
  }
  return {
    name,
    namespace: 'default',
    kind: 'CiliumNetworkPolicy',
    selector: { matchLabels: new Map([['app', 'bench']]) },
    rules: [rule],
    defaultDeny: true,
    position: POSITION,
  }
}

/** The address of number `i`: 11.0.0.0 onwards, in the first 4 of 16 octets. */
export function setAddress(octets: Uint8Array, i: number): void {
  octets[0] = 11 + (i >>> 24)
  octets[1] = (i >>> 16) & 255
  octets[2] = (i >>> 8) & 255
  octets[3] = i & 255
}
