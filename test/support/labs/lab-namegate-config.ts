// The configuration file of namegate in a lab: explicit listeners on the gateways of the pods, the lab's name server, eBPF under its own
// pins, everything in one folder. A test can replace each part.

import type { Host } from './lab.ts'
import { DNS_4 } from './lab-pod.ts'

/** The host that runs namegate, and the pods that it serves. A PodLab is one. */
export interface NamegateHosts {
  readonly node: Host
  readonly pods: readonly {
    readonly interface: string
    readonly gateway4?: string
    readonly gateway6?: string
  }[]
}

export interface NamegateOptions {
  /** Text of policy files by file name, e.g. `{ 'a.yaml': ... }`. */
  readonly policies: Readonly<Record<string, string>>
  /** Items of the endpoints file, e.g. `{ name: pod1, addresses: [10.20.1.2], labels: { app: a }, interface: lxc1 }`. */
  readonly endpoints: readonly string[]
  /** Addresses of the explicit listeners on port 53; default: every pod's gateways. */
  readonly listeners?: readonly string[]
  /** Other listeners in place of those, as items of `listeners`. */
  readonly listenerItems?: readonly string[]
  /** Default: eBPF with its own pins. */
  readonly datapath?: string
  /** More lines of the config file. */
  readonly config?: string
  /** `ADDRESS:PORT` of the upstream; default: the lab's name server. */
  readonly upstream?: string
}

/** The text of the file; `folder` has `policies/` and `endpoints.yaml`. */
export function configText(
  { pods }: NamegateHosts,
  { folder, pinPath }: { readonly folder: string; readonly pinPath: string },
  options: NamegateOptions,
): string {
  const gateways = pods.flatMap(({ gateway4, gateway6 }) =>
    gateway4 === undefined || gateway6 === undefined ? [] : [gateway4, gateway6],
  )
  const explicit = (options.listeners ?? gateways).map(
    (address) => `{ address: '${address}', port: 53, mode: explicit }`,
  )
  const listeners = (options.listenerItems ?? explicit).map((item) => `  - ${item}`)
  const ebpf = `{ kind: ebpf, ebpf: { pin-path: '${pinPath}' } }`
  return [
    'listeners:',
    ...listeners,
    `upstreams: { servers: ['${options.upstream ?? `${DNS_4}:53`}'] }`,
    `policies: { paths: ['${folder}/policies'] }`,
    `endpoints: { files: ['${folder}/endpoints.yaml'] }`,
    `datapath: ${options.datapath ?? ebpf}`,
    `state: { directory: '${folder}/state' }`,
    `admin: { socket: '${folder}/admin.sock' }`,
    options.config ?? '',
    '',
  ].join('\n')
}
