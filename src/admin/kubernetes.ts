// Answers the requests below `/v1/kubernetes/`: where a network plugin put a pod or removes one, and the acceptance of held removals.

import { isIP } from 'node:net'
import type { AcceptedShape, DisplacedShape, PlacedShape } from './document/cluster-shapes.ts'
import type { Problem } from './problems.ts'
import { fieldsOf } from './requests.ts'
import type { AdminState, PodPlacement } from './state.ts'

type ClusterAnswer =
  | { readonly kind: 'ok'; readonly value: PlacedShape | DisplacedShape | AcceptedShape }
  | { readonly kind: 'problem'; readonly problem: Problem }

const LOOK_MS = 2
/** The longest wait for a pod, in milliseconds. The network plugin then fails, and the kubelet tries again. */
const WAIT_MS = 10_000

export function acceptRemovals({ cluster }: AdminState): ClusterAnswer {
  return cluster === undefined ? noCluster() : { kind: 'ok', value: { removed: cluster.accept() } }
}

/** Notes where a pod is, and waits until its policies are in force and its interface is judged by them. */
export async function placePod(state: AdminState, body: unknown): Promise<ClusterAnswer> {
  const { clock, cluster } = state
  if (cluster === undefined) return noCluster()
  const placement = readPlacement(body)
  if (placement === undefined) {
    const form =
      'body: expected {"namespace", "name", "uid", "interface": TEXT, "addresses": [ADDRESS]}'
    return problem('invalid-request', form)
  }
  cluster.place(placement)
  const until = clock.now() + WAIT_MS
  for (;;) {
    const reason = whyNotEnforced(state, placement)
    const endpoint = `${placement.namespace}/${placement.name}`
    if (reason === undefined) return { kind: 'ok', value: { endpoint, enforced: true } }
    if (clock.now() > until) {
      return problem('unavailable', `pod ${endpoint} is not enforced yet: ${reason}`)
    }
    await new Promise<void>((resolve) => void clock.after(LOOK_MS, resolve))
  }
}

export function displacePod({ cluster }: AdminState, body: unknown): ClusterAnswer {
  if (cluster === undefined) return noCluster()
  const fields = fieldsOf(body, ['namespace', 'name', 'uid'])
  const [namespace, name, uid] = ['namespace', 'name', 'uid'].map((key) => fields?.get(key))
  if (typeof namespace !== 'string' || typeof name !== 'string' || typeof uid !== 'string') {
    return problem('invalid-request', 'body: expected {"namespace", "name", "uid": TEXT}')
  }
  cluster.displace({ namespace, name, uid })
  return { kind: 'ok', value: { endpoint: `${namespace}/${name}` } }
}

/** Undefined when the datapath judges the packets of the pod by its policies. */
function whyNotEnforced(state: AdminState, placement: PodPlacement): string | undefined {
  const { cluster, endpoints, core, transition } = state
  const why = cluster?.whyNot(placement)
  if (why !== undefined) return why
  const endpoint = endpoints.registry.byName(`${placement.namespace}/${placement.name}`)
  if (endpoint === undefined) return 'the sources refuse it (namegate get sources)'
  const hook = core.datapath.hooks.stateOf(endpoint.id)
  if (hook.kind === 'waiting' || hook.kind === 'failed') return hook.reason
  if (hook.kind === 'unfenced') return `datapath ${core.datapath.kind} enforces nothing`
  return transition.pending ? 'the datapath is behind' : undefined
}

function readPlacement(body: unknown): PodPlacement | undefined {
  const fields = fieldsOf(body, ['namespace', 'name', 'uid', 'interface', 'addresses'])
  const text = (key: string): string | undefined => {
    const value = fields?.get(key)
    return typeof value === 'string' ? value : undefined
  }
  const [namespace, name, uid] = [text('namespace'), text('name'), text('uid')]
  const place = text('interface')
  const addresses: unknown = fields?.get('addresses')
  if (!namespace || !name || uid === undefined || !place || !Array.isArray(addresses))
    return undefined
  if (!addresses.every((each) => typeof each === 'string' && isIP(each) !== 0)) return undefined
  return { namespace, name, uid, interface: place, addresses }
}

function noCluster(): ClusterAnswer {
  return problem('conflict', 'the daemon reads no cluster: its configuration has no kubernetes')
}

function problem(kind: Problem['kind'], detail: string): ClusterAnswer {
  return { kind: 'problem', problem: { kind, detail } }
}
