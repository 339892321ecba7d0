// Opens the Kubernetes cluster that the configuration names. Without `kubernetes` in the configuration, nothing of src/kubernetes is loaded.

import { hostname } from 'node:os'
import type { Config } from '../config/config.ts'
import type { Clock } from '../core/clock.ts'
import { InvalidInputError } from '../core/errors.ts'
import type { Prefix } from '../core/ip.ts'
import type { Kubernetes } from '../kubernetes/kubernetes.ts'
import { loadPosix } from '../native/native.ts'
import type { ReceivedObjects } from '../sources/files/given-items.ts'
import type { TextKeeper } from '../sources/files/last-good-texts.ts'
import { policyObjectReader } from '../sources/files/policy-files.ts'
import { RandomPool, systemRandom } from '../core/random.ts'
import type { Log } from '../telemetry/log.ts'
import { VERSION } from '../version.ts'

/** What the daemon gives to the cluster. */
export interface ClusterParts {
  readonly clock: Clock
  readonly keeper: TextKeeper | undefined
  readonly onChange: (change: ReceivedObjects) => boolean
}

/** Makes the cluster of a daemon. */
export type OpenCluster = (parts: ClusterParts) => Kubernetes

/** Loads the code for clusters. Undefined if the configuration names no cluster. Throws InvalidInputError for a fault in the kubeconfig. */
export async function loadCluster(config: Config, log: Log): Promise<OpenCluster | undefined> {
  const { kubernetes } = config
  if (kubernetes?.enabled !== true) return undefined
  const [{ Kubernetes: Cluster }, { Connection }, { findAccess }] = await Promise.all([
    import('../kubernetes/kubernetes.ts'),
    import('../kubernetes/connection/connection.ts'),
    import('../kubernetes/connection/find-access.ts'),
  ])
  const found = findAccess(kubernetes.kubeconfig)
  if (found.kind === 'faults') throw new InvalidInputError(found.faults)
  const { access } = found
  return ({ clock, keeper, onChange }) =>
    new Cluster({
      config: kubernetes,
      peersMax: config.limits.peers,
      clock,
      log,
      random: new RandomPool(systemRandom),
      api: new Connection({ access, clock, agent: `namegate/${VERSION}` }),
      server: access.origin + access.prefix,
      node: kubernetes.node || process.env['NODE_NAME'] || hostname(),
      keeper,
      parsePolicy: policyObjectReader(config, log),
      interfaceOf: workloadInterface,
      onChange,
    })
}

function workloadInterface({ family, octets }: Prefix): string | undefined {
  const name = loadPosix().workloadInterface(octets.subarray(0, family === 4 ? 4 : 16))
  return typeof name === 'string' && name !== '' ? name : undefined
}
