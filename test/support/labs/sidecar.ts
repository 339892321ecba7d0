// The pod of deploy/kubernetes/overlays/sidecar/sidecar.yaml as a kubelet would make it, without the image: each container is a process in
// the pod's network namespace with exactly the command, environment, user, capabilities, mounts and read-only root of the manifest.
// capsh sets capabilities, and mounts are in a mount namespace of their own, so this host does not change.

import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseAllDocuments } from 'yaml'
import { z } from 'zod'
import { containerCommand } from './container-command.ts'
import type { Host } from './lab.ts'
import type { LabProcess, Output } from './lab-process.ts'

const MANIFEST = 'deploy/kubernetes/overlays/sidecar/sidecar.yaml'
const PROGRAM = fileURLToPath(new URL('../../../bin/namegate', import.meta.url))

const container = z.object({
  name: z.string(),
  args: z.array(z.string()).optional(),
  restartPolicy: z.string().optional(),
  env: z.array(z.object({ name: z.string(), value: z.string() })).optional(),
  startupProbe: z.object({ httpGet: z.object({ path: z.string(), port: z.number() }) }).optional(),
  securityContext: z.object({
    runAsUser: z.number().optional(),
    allowPrivilegeEscalation: z.literal(false),
    readOnlyRootFilesystem: z.boolean().optional(),
    capabilities: z.object({
      drop: z.tuple([z.literal('ALL')]),
      add: z.array(z.string()).optional(),
    }),
  }),
  volumeMounts: z
    .array(z.object({ name: z.string(), mountPath: z.string(), readOnly: z.boolean().optional() }))
    .optional(),
})
export type Container = z.infer<typeof container>

const configMap = z.object({ kind: z.literal('ConfigMap'), data: z.record(z.string(), z.string()) })
const deployment = z.object({
  kind: z.literal('Deployment'),
  spec: z.object({
    template: z.object({
      spec: z.object({ initContainers: z.array(container), containers: z.array(container) }),
    }),
  }),
})

export interface Manifest {
  readonly data: Readonly<Record<string, string>>
  readonly init: readonly Container[]
  readonly containers: readonly Container[]
}

export function readManifest(): Manifest {
  const documents = parseAllDocuments(readFileSync(MANIFEST, 'utf8'))
  for (const { errors } of documents) assert.deepEqual(errors, [])
  const [map, pod] = documents.map((document) => {
    const value: unknown = document.toJS()
    return value
  })
  const { initContainers, containers } = deployment.parse(pod).spec.template.spec
  return { data: configMap.parse(map).data, init: initContainers, containers }
}

export class SidecarPod {
  readonly manifest = readManifest()
  readonly #host: Host
  readonly #folder = mkdtempSync(join(tmpdir(), 'namegate-sidecar-'))

  readonly #program: string

  /** `nameServer` is for the pod's resolv.conf. `program` replaces bin/namegate. */
  constructor(host: Host, nameServer: string, program = PROGRAM) {
    this.#host = host
    this.#program = program
    mkdirSync(join(this.#folder, 'etc', 'namegate'), { recursive: true })
    mkdirSync(join(this.#folder, 'run'))
    writeFileSync(join(this.#folder, 'etc', 'resolv.conf'), `nameserver ${nameServer}\n`)
    for (const [name, text] of Object.entries(this.manifest.data)) {
      writeFileSync(join(this.#folder, 'etc', 'namegate', name), text)
    }
  }

  container(name: string): Container {
    const { init, containers } = this.manifest
    const found = [...init, ...containers].find((each) => each.name === name)
    assert.ok(found, `the manifest has no container ${name}`)
    return found
  }

  /** Runs a container to its end. `args` replace its own, `without` removes capabilities. */
  async run(
    name: string,
    args?: readonly string[],
    without: readonly string[] = [],
  ): Promise<Output> {
    const [command, rest] = this.#command(name, args, without)
    return await this.#host.run(command, rest, { limitMs: 30_000 })
  }

  start(name: string): LabProcess {
    const [command, rest] = this.#command(name)
    return this.#host.start(command, rest)
  }

  /** Starts a program of the application, with its mounts, its user and no capability. */
  startApplication(script: string): LabProcess {
    const user = ['--reuid', '1000', '--regid', '1000', '--clear-groups', '--bounding-set', '-all']
    return this.#host.start('unshare', [
      ...['--mount', 'sh', '-c', `${this.#mounts()}\nexec "$@"`, 'mounts'],
      ...['setpriv', ...user, '--no-new-privs', 'sh', '-c', script],
    ])
  }

  close(): void {
    rmSync(this.#folder, { recursive: true, force: true })
  }

  #command(
    name: string,
    args?: readonly string[],
    without: readonly string[] = [],
  ): readonly [string, readonly string[]] {
    const { args: own = [], env = [], securityContext } = this.container(name)
    const { capabilities, runAsUser, readOnlyRootFilesystem } = securityContext
    assert.deepEqual([runAsUser, readOnlyRootFilesystem], [0, true])
    return containerCommand(this.#host, {
      command: [this.#program, ...(args ?? own)],
      environment: Object.fromEntries(env.map((each) => [each.name, each.value])),
      capabilities: (capabilities.add ?? []).filter((each) => !without.includes(each)),
      mounts: this.#mounts(),
    })
  }

  /** The mounts of the manifest, and /etc with the pod's resolv.conf. Everything else is read-only. */
  #mounts(): string {
    const etc = join(this.#folder, 'etc')
    return [
      'set -e',
      'mount --make-rprivate /',
      // The loader finds libraries by it.
      `[ -f '${etc}/ld.so.cache' ] || cp /etc/ld.so.cache '${etc}'`,
      'mount -t tmpfs tmpfs /run',
      'mkdir /run/namegate',
      `mount --bind '${this.#folder}/run' /run/namegate`,
      `mount --bind '${etc}' /etc`,
      'mount -o remount,bind,ro /etc',
      'mount -o remount,bind,ro /',
    ].join('\n')
  }
}
