// Definitions of kinds that the control plane of the tests lacks.

/** They have only the fields that deploy/kubernetes uses, so that the server refuses any other field. */
export const DEFINITIONS = [
  definition('policy.networking.k8s.io', 'v1alpha2', 'ClusterNetworkPolicy', 'Cluster', {}),
  definition('monitoring.coreos.com', 'v1', 'PodMonitor', 'Namespaced', {
    selector: {
      type: 'object',
      properties: { matchLabels: { type: 'object', additionalProperties: { type: 'string' } } },
    },
    podMetricsEndpoints: {
      type: 'array',
      items: {
        type: 'object',
        properties: { port: { type: 'string' }, path: { type: 'string' } },
      },
    },
  }),
]

function definition(
  group: string,
  version: string,
  kind: string,
  scope: string,
  properties: object,
): object {
  const plural = `${kind.toLowerCase()}s`.replace(/ys$/, 'ies')
  const spec = { type: 'object', properties }
  return {
    metadata: {
      name: `${plural}.${group}`,
      annotations: { 'api-approved.kubernetes.io': 'unapproved, for a test' },
    },
    spec: {
      group,
      scope,
      names: { kind, plural, listKind: `${kind}List`, singular: kind.toLowerCase() },
      versions: [
        {
          name: version,
          served: true,
          storage: true,
          schema: { openAPIV3Schema: { type: 'object', properties: { spec } } },
        },
      ],
    },
  }
}
