// The pod of deploy/kubernetes/base as a kubelet would make it on a node, without the image: each container is a process in the node's
// network namespace with exactly the command, environment, capabilities, mounts and read-only root of the manifest, and with the token and
// the authority of the cluster where a kubelet mounts them.

import assert from 'node:assert/strict'
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join, resolve } from 'node:path'
import { z } from 'zod'
import { containerCommand } from './container-command.ts'
import type { ControlPlane } from './control-plane.ts'
import type { Host } from './lab.ts'
import type { LabProcess, Output } from './lab-process.ts'
import { objectOf, type Manifest } from './manifests.ts'

const PROGRAM = resolve('bin/namegate')
const ACCOUNT = '/run/secrets/kubernetes.io/serviceaccount'

const MOUNTS = [
  ['config', '/etc/namegate'],
  ['state', '/var/lib/namegate'],
  ['run', '/run/namegate'],
  ['bpf', '/sys/fs/bpf'],
]
const CNI_MOUNTS = [
  ['cni-conf', '/etc/cni/net.d'],
  ['cni-bin', '/opt/cni/bin'],
]
const FOLDERS = ['etc/namegate', 'etc/cni/net.d', 'run', 'state', 'account', 'cni-conf', 'cni-bin']

const container = z.object({
  name: z.string(),
  command: z.array(z.string()).default([PROGRAM]),
  args: z.array(z.string()).default([]),
  env: z
    .array(
      z.object({
        name: z.string(),
        valueFrom: z.object({ fieldRef: z.object({ fieldPath: z.literal('spec.nodeName') }) }),
      }),
    )
    .default([]),
  securityContext: z.object({
    runAsUser: z.literal(0),
    allowPrivilegeEscalation: z.literal(false),
    readOnlyRootFilesystem: z.literal(true),
    capabilities: z.object({
      drop: z.tuple([z.literal('ALL')]),
      add: z.array(z.string()).default([]),
    }),
  }),
  volumeMounts: z.array(z.object({ name: z.string(), mountPath: z.string() })),
})
const daemonSet = z.object({
  spec: z.object({
    template: z.object({
      spec: z.object({
        hostNetwork: z.literal(true),
        initContainers: z.array(container).default([]),
        containers: z.array(z.unknown()),
      }),
    }),
  }),
})
const configMap = z.object({ data: z.record(z.string(), z.string()) })

export interface NodePodOptions {
  readonly host: Host
  readonly cluster: ControlPlane
  readonly nodeName: string
  readonly nameServer: string
}

/** The folders of a node, which outlive its pods. `folder` has the folders of the manifests. */
export class NodePod {
  readonly folder = mkdtempSync(join(tmpdir(), 'ng-test-node-pod-'))
  readonly #bpffs = join('/sys/fs/bpf', basename(this.folder))
  readonly #options: NodePodOptions

  constructor(options: NodePodOptions) {
    this.#options = options
    const { cluster, nameServer } = options
    for (const name of FOLDERS) {
      mkdirSync(join(this.folder, name), { recursive: true })
    }
    mkdirSync(this.#bpffs)
    copyFileSync('/etc/ld.so.cache', join(this.folder, 'etc/ld.so.cache'))
    writeFileSync(join(this.folder, 'etc/resolv.conf'), `nameserver ${nameServer}\n`)
    writeFileSync(join(this.folder, 'account/token'), 'nodetoken')
    copyFileSync(cluster.authority, join(this.folder, 'account/ca.crt'))
  }

  get socket(): string {
    return join(this.folder, 'run/admin.sock')
  }

  /** Starts the container of a manifest. */
  start(manifests: readonly Manifest[]): LabProcess {
    const [first] = objectOf(manifests, 'DaemonSet', daemonSet).spec.template.spec.containers
    const [command, args] = this.#command(manifests, container.parse(first))
    return this.#options.host.start(command, args)
  }

  /** Runs the init containers of a manifest, one after the other. */
  async initialize(manifests: readonly Manifest[]): Promise<readonly Output[]> {
    const { initContainers } = objectOf(manifests, 'DaemonSet', daemonSet).spec.template.spec
    const outputs: Output[] = []
    for (const each of initContainers) {
      const [command, args] = this.#command(manifests, each)
      outputs.push(await this.#options.host.run(command, args, { limitMs: 30_000 }))
    }
    return outputs
  }

  close(): void {
    rmSync(this.#bpffs, { recursive: true, force: true })
    rmSync(this.folder, { recursive: true, force: true })
  }

  #command(
    manifests: readonly Manifest[],
    { command, args, env, securityContext, volumeMounts }: z.infer<typeof container>,
  ): readonly [string, readonly string[]] {
    const mounted = volumeMounts.map(({ name, mountPath }) => [name, mountPath])
    const isCni = args[0] === 'cni'
    assert.deepEqual(mounted, isCni ? CNI_MOUNTS : MOUNTS)
    for (const [name, text] of Object.entries(objectOf(manifests, 'ConfigMap', configMap).data)) {
      writeFileSync(join(this.folder, 'etc/namegate', name), text)
    }
    const { host, cluster, nodeName } = this.#options
    return containerCommand(host, {
      command: [...command, ...args],
      environment: {
        PATH: `${dirname(PROGRAM)}:${dirname(process.execPath)}:/usr/sbin:/usr/bin:/sbin:/bin`,
        KUBERNETES_SERVICE_HOST: '127.0.0.1',
        KUBERNETES_SERVICE_PORT: String(cluster.port),
        ...Object.fromEntries(env.map(({ name }) => [name, nodeName])),
      },
      capabilities: securityContext.capabilities.add,
      mounts: isCni ? this.#cniMounts() : this.#mounts(),
    })
  }

  #cniMounts(): string {
    const { folder } = this
    return [
      'set -e',
      'mount --make-rprivate /',
      `mount --bind '${folder}/etc' /etc`,
      'mount -o remount,bind,ro /etc',
      `mount --bind '${folder}/cni-conf' /etc/cni/net.d`,
      'mount -t tmpfs tmpfs /opt',
      'mkdir -p /opt/cni/bin',
      `mount --bind '${folder}/cni-bin' /opt/cni/bin`,
      'mount -o remount,bind,ro /',
    ].join('\n')
  }

  #mounts(): string {
    const { folder } = this
    return [
      'set -e',
      'mount --make-rprivate /',
      'mount -t tmpfs tmpfs /run',
      `mkdir -p /run/namegate ${ACCOUNT}`,
      `mount --bind '${folder}/run' /run/namegate`,
      `mount --bind '${folder}/account' ${ACCOUNT}`,
      'mount -t tmpfs tmpfs /var/lib',
      'mkdir /var/lib/namegate',
      `mount --bind '${folder}/state' /var/lib/namegate`,
      `mount --bind '${this.#bpffs}' /sys/fs/bpf`,
      `mount --bind '${folder}/etc' /etc`,
      'mount -o remount,bind,ro /etc',
      'mount --bind /proc/sys /proc/sys',
      'mount -o remount,bind,ro /proc/sys',
      'mount -o remount,bind,ro /',
    ].join('\n')
  }
}
