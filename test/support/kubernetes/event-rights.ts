// The rights that deploy/kubernetes/components/events gives, and what makes each of them necessary.

export const LEASES = '/apis/coordination.k8s.io/v1/namespaces/namegate/leases'
const RBAC = '/apis/rbac.authorization.k8s.io/v1'

export interface EventRight {
  readonly verb: string
  readonly resource: string
  readonly group: string
  readonly namespace: string
  readonly role: string
  /** What is deleted, so that the right is necessary. */
  readonly prepare: readonly string[]
  /** The end of the reason. */
  readonly place: string
}

const OF_LEASES = {
  resource: 'leases',
  group: 'coordination.k8s.io',
  namespace: 'namegate',
  role: `${RBAC}/namespaces/namegate/roles/namegate-events`,
  prepare: [],
  place: 'in namespace namegate',
}
const OF_EVENTS = {
  resource: 'events',
  group: '',
  namespace: 'shop',
  role: `${RBAC}/clusterroles/namegate-events`,
  prepare: [],
  place: 'in a ClusterRole',
}
export const EVENT_RIGHTS: readonly EventRight[] = [
  { ...OF_LEASES, verb: 'get' },
  { ...OF_LEASES, verb: 'patch' },
  { ...OF_LEASES, verb: 'create', prepare: [`${LEASES}/namegate-events`] },
  { ...OF_EVENTS, verb: 'patch' },
  {
    ...OF_EVENTS,
    verb: 'create',
    prepare: ['shop', 'default'].map((each) => `/api/v1/namespaces/${each}/events`),
  },
]
