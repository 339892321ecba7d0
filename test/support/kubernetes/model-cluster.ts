// A cluster of a daemon over a model of the API server, on the time of the test. Each pod has an interface on this node.

import type { Config } from '../../../src/config/config.ts'
import { RandomPool } from '../../../src/core/random.ts'
import type { ClusterParts } from '../../../src/daemon/open-cluster.ts'
import { Kubernetes } from '../../../src/kubernetes/kubernetes.ts'
import { policyObjectReader } from '../../../src/sources/files/policy-files.ts'
import type { Log } from '../../../src/telemetry/log.ts'
import type { MemoryApi } from './memory-api.ts'

export interface ModelClusterOptions extends ClusterParts {
  readonly config: Config
  readonly api: MemoryApi
  readonly log: Log
}

export function modelCluster({ config, api, log, ...parts }: ModelClusterOptions): Kubernetes {
  if (config.kubernetes === undefined) throw new Error('the configuration has no kubernetes')
  return new Kubernetes({
    ...parts,
    config: config.kubernetes,
    log,
    random: new RandomPool({ fill: (target) => target.fill(0x80) }),
    api: {
      get: (path, done) => api.get(path, done),
      watch: (path, handlers) => api.watch(path, handlers),
      change: (...sent) => api.change(...sent),
      close: () => undefined,
    },
    server: 'https://model.test',
    node: config.kubernetes.node,
    peersMax: config.limits.peers,
    parsePolicy: policyObjectReader(config, log),
    interfaceOf: ({ octets }) => `lxc${octets.join('-').slice(0, 8)}`,
  })
}
