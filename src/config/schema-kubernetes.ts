// Defines the section of the configuration file about Kubernetes, and the fields of Config that its keys become. Without the section the
// daemon loads nothing of src/kubernetes.

import { z } from 'zod'
import { RELATIVE } from './schema-policy.ts'
import { duration, faultAt, flag, group, list, oneOf, section, words } from './schema-values.ts'

/** The collections that can be read. `cilium-policies` stands for both kinds of Cilium. */
export const COLLECTION_NAMES = [
  'pods',
  'namespaces',
  'network-policies',
  'cilium-policies',
  'cluster-network-policies',
] as const

const SHARE_FORM = 'a share from 1% to 100%, such as 20%'

/** A text such as `20%`, which becomes a number from 0 to 1. */
const share = z
  .string({ error: SHARE_FORM })
  .regex(/^(?:[1-9][0-9]?|100)%$/, { error: SHARE_FORM })
  .transform((text) => Number(text.slice(0, -1)) / 100)
  .prefault('20%')
  .meta({
    description:
      'a part of all policies of a kind; if more than this part is removed within 10 seconds, namegate holds the removals (1% to 100%; default 20%).',
  })

/** A text that can be empty. */
function maybe(doc: string, whenEmpty: string) {
  return z
    .string({ error: 'a text' })
    .refine((each) => !each.includes('\0'), { error: 'a text' })
    .default('')
    .meta({ description: `${doc}; empty: ${whenEmpty}.` })
}

/** Pods, namespaces and policies of a cluster. Left out: namegate reads files only. */
export const kubernetes = section(
  'Pods, namespaces and policies that a Kubernetes API server has. Without this section namegate asks no server',
  {
    enabled: flag({ default: true, doc: 'false asks no server' }),
    kubeconfig: maybe(
      `file with the server and the credentials (path, ${RELATIVE})`,
      'the service account of the pod that namegate runs in',
    ),
    node: maybe(
      'name of this node in the cluster',
      'the environment variable NODE_NAME, else the name of the host',
    ),
    collections: list(oneOf(COLLECTION_NAMES, { default: 'pods', doc: 'one collection' }), {
      default: [...COLLECTION_NAMES],
      doc: 'what namegate reads',
      unit: 'list',
      min: 1,
    }),
    namespaces: list(words('namespace'), {
      default: [],
      doc: 'namespaces whose pods and policies are read',
      unit: 'list; empty: all namespaces',
    }),
    'cluster-name': words('name')
      .regex(/^[a-z0-9](?:[-a-z0-9]{0,30}[a-z0-9])?$/, {
        error: 'a name of at most 32 lower-case letters, digits and -',
      })
      .default('default')
      .meta({
        description:
          'cluster of the pods, in their label io.cilium.k8s.policy.cluster (name; default default).',
      }),
    peers: oneOf(['none', 'watch'], {
      default: 'none',
      doc: 'pods of other nodes: none = unknown; watch = known, up to limits.peers, so that rules that select pods hold for them',
    }),
    spread: duration({
      default: '60s',
      doc: 'time over which lists are spread after an outage, so that the nodes of a cluster do not all ask at once',
    }),
    'mass-removal': group('Removal of many policies at once, which can be an accident', {
      share,
      hold: duration({ default: '5m', doc: 'how long the removed policies stay in force' }),
    }).prefault({}),
    events: group('Events about policies with faults, which `kubectl describe` shows', {
      enabled: flag({
        default: false,
        doc: 'true lets one node of the cluster write them, which needs rights of its own',
      }),
      namespace: words('namespace').default('namegate').meta({
        description: 'namespace of the Lease that chooses the node (name; default namegate).',
      }),
      lease: duration({
        default: '60s',
        min: 1000,
        max: 3_600_000,
        doc: 'how long the node can be silent before another node takes its place',
      }),
    }).prefault({}),
  },
  (
    { 'cluster-name': clusterName, 'mass-removal': removal, spread, collections, events, ...keys },
    context,
  ) => {
    if (keys.peers === 'watch' && !collections.includes('pods')) {
      context.addIssue(faultAt(['peers'], 'found watch, which needs pods among collections'))
    }
    return {
      ...keys,
      collections: [...new Set(collections)],
      clusterName,
      spreadMs: spread,
      massRemoval: { share: removal.share, holdMs: removal.hold },
      events: { enabled: events.enabled, namespace: events.namespace, leaseMs: events.lease },
    }
  },
)
