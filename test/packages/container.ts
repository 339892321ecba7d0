// A container made from an OCI archive like Docker's: its layers unpacked, and its own command started by crun in a network namespace of the
// site with the default mounts and masks of Docker. It gets only the capabilities, folders and user that the caller lists.

import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { z } from 'zod'
import type { Host } from '../support/labs/lab.ts'
import { LabProcess, run, type Output } from '../support/labs/lab-process.ts'

const descriptor = z.object({ digest: z.string() })
const index = z.object({ manifests: z.tuple([descriptor]) })
const manifest = z.object({ config: descriptor, layers: z.array(descriptor) })
const config = z.object({
  architecture: z.string(),
  config: z.object({
    Env: z.array(z.string()),
    Entrypoint: z.array(z.string()),
    Cmd: z.array(z.string()),
    WorkingDir: z.string(),
    Labels: z.record(z.string(), z.string()),
    Healthcheck: z.object({ Test: z.tuple([z.literal('CMD')]).rest(z.string()) }),
  }),
})

export type ImageConfig = z.infer<typeof config>['config']

/** An unpacked image. */
export interface Image {
  readonly config: ImageConfig
  readonly digest: string
  /** The folder with its files. */
  readonly root: string
}

/** Unpacks an archive below `folder`. */
export function unpack(archive: string, folder: string): Image {
  const layout = join(folder, 'layout')
  const root = join(folder, 'root')
  for (const each of [layout, root]) mkdirSync(each, { recursive: true })
  execFileSync('tar', ['-xf', archive, '-C', layout])
  const blob = (digest: string): string => join(layout, 'blobs', digest.replace(':', '/'))
  const json = (path: string): unknown => JSON.parse(readFileSync(path, 'utf8'))
  const [{ digest }] = index.parse(json(join(layout, 'index.json'))).manifests
  const { config: own, layers } = manifest.parse(json(blob(digest)))
  for (const layer of layers) addLayer(blob(layer.digest), root)
  const image = { config: config.parse(json(blob(own.digest))).config, digest, root }
  rmSync(layout, { recursive: true })
  return image
}

/** Unpacks a layer over those below it. A file `.wh.NAME` removes NAME. */
function addLayer(layer: string, root: string): void {
  const names = execFileSync('tar', ['-tzf', layer], { encoding: 'utf8', maxBuffer: 64 << 20 })
  const marks = names.split('\n').filter((name) => basename(name).startsWith('.wh.'))
  for (const mark of marks) {
    const path = join(root, dirname(mark))
    const name = basename(mark).slice('.wh.'.length)
    const gone = name === '.wh..opq' ? readdirSync(path) : [name]
    for (const each of gone) rmSync(join(path, each), { recursive: true, force: true })
  }
  const options = ['--numeric-owner', '--same-owner', '--exclude=.wh.*']
  execFileSync('tar', ['-xzpf', layer, '-C', root, ...options])
}

export interface ContainerOptions {
  readonly image: Image
  /** Its network namespace. */
  readonly host: Host
  /** Replaces the image's CMD. */
  readonly args?: readonly string[]
  /** Without `CAP_`, like `--cap-add` after `--cap-drop ALL`. */
  readonly capabilities: readonly string[]
  readonly user?: number
  readonly isReadOnly?: boolean
  /** Folder of this machine by its path in the container. */
  readonly mounts: Readonly<Record<string, string>>
  readonly readOnlyMounts: Readonly<Record<string, string>>
}

let made = 0

export class Container {
  readonly #id = `namegate-trial-${process.pid}-${++made}`
  readonly #folder: string
  readonly #process: LabProcess
  readonly #image: Image
  readonly #user: number

  /** Starts it. `folder` is for files of the runtime. */
  constructor(options: ContainerOptions, folder: string) {
    this.#image = options.image
    this.#user = options.user ?? 0
    this.#folder = mkdtempSync(join(folder, 'container-'))
    writeFileSync(join(this.#folder, 'config.json'), JSON.stringify(specOf(options)))
    this.#process = new LabProcess(...this.#crun('run', '-b', this.#folder, this.#id))
  }

  get running(): boolean {
    return this.#process.running
  }

  get log(): string {
    return this.#process.stdout + this.#process.stderr
  }

  /** Runs a command in it as its user, like `docker exec`. */
  async exec(...command: readonly string[]): Promise<Output> {
    const user = `--user=${this.#user}:${this.#user}`
    return await run(...this.#crun('exec', user, this.#id, ...command))
  }

  /** Runs the HEALTHCHECK of its image. Exit code 0: healthy. */
  async health(): Promise<Output> {
    const [, ...command] = this.#image.config.Healthcheck.Test
    return await this.exec(...command)
  }

  /** Waits until HEALTHCHECK reports healthy. Returns the milliseconds. */
  async untilHealthy(limitMs = 60_000): Promise<number> {
    const begin = performance.now()
    for (;;) {
      const { code, stderr } = await this.health()
      const ms = Math.round(performance.now() - begin)
      if (code === 0) return ms
      if (!this.running || ms > limitMs) throw new Error(`not healthy: ${stderr}\n${this.log}`)
    }
  }

  async ended(limitMs: number): Promise<Output | undefined> {
    return await this.#process.ended(limitMs)
  }

  /** Stops it like `docker stop`. */
  async stop(): Promise<Output | undefined> {
    await this.#signal('TERM')
    const output = await this.ended(10_000)
    if (output === undefined) await this.#signal('KILL')
    return output
  }

  /** Removes it like `docker rm -f`. */
  async remove(): Promise<void> {
    await run(...this.#crun('delete', '--force', this.#id))
    await this.#process.ended(5000)
    rmSync(this.#folder, { recursive: true, force: true })
  }

  async #signal(name: string): Promise<void> {
    await run(...this.#crun('kill', this.#id, name))
  }

  /** Keeps the state of the runtime in a folder of this container, and not in /run. */
  #crun(...args: readonly string[]): readonly [string, readonly string[]] {
    const options = ['--cgroup-manager=disabled', `--root=${join(this.#folder, 'state')}`]
    return ['unshare', ['--mount', 'sh', '-c', CRUN, 'crun', ...options, ...args]]
  }
}

/** crun cannot work beside two versions of cgroups, even if it makes no cgroup. */
const CRUN =
  '! mountpoint -q /sys/fs/cgroup/unified || umount /sys/fs/cgroup/unified; exec crun "$@"'

/** The configuration for the runtime, in Docker's form. */
function specOf(options: ContainerOptions): object {
  const { image, host, capabilities, user = 0, isReadOnly = false } = options
  const granted = capabilities.map((name) => `CAP_${name}`)
  // A user other than root has capabilities only in its bounding set.
  const effective = user === 0 ? granted : []
  return {
    ociVersion: '1.0.2',
    process: {
      user: { uid: user, gid: user },
      args: [...image.config.Entrypoint, ...(options.args ?? image.config.Cmd)],
      env: image.config.Env,
      cwd: image.config.WorkingDir,
      capabilities: { bounding: granted, effective, permitted: effective },
      noNewPrivileges: true,
    },
    root: { path: image.root, readonly: isReadOnly },
    hostname: 'namegate',
    mounts: [
      ...SYSTEM_MOUNTS,
      ...Object.entries(options.mounts).map(([to, from]) => bind(from, to, 'rw')),
      ...Object.entries(options.readOnlyMounts).map(([to, from]) => bind(from, to, 'ro')),
    ],
    linux: {
      namespaces: [
        ...['pid', 'ipc', 'uts', 'mount'].map((type) => ({ type })),
        { type: 'network', path: `/run/netns/${host.namespace}` },
      ],
      maskedPaths: ['/proc/kcore', '/proc/keys', '/proc/timer_list', '/sys/firmware'],
      readonlyPaths: ['/proc/bus', '/proc/fs', '/proc/irq', '/proc/sys', '/proc/sysrq-trigger'],
    },
  }
}

const SYSTEM_MOUNTS: readonly object[] = [
  { destination: '/proc', type: 'proc', source: 'proc' },
  {
    destination: '/dev',
    type: 'tmpfs',
    source: 'tmpfs',
    options: ['nosuid', 'strictatime', 'mode=755', 'size=65536k'],
  },
  {
    destination: '/dev/shm',
    type: 'tmpfs',
    source: 'shm',
    options: ['nosuid', 'noexec', 'nodev', 'mode=1777', 'size=65536k'],
  },
  {
    destination: '/sys',
    type: 'sysfs',
    source: 'sysfs',
    options: ['nosuid', 'noexec', 'nodev', 'ro'],
  },
]

function bind(source: string, destination: string, access: 'ro' | 'rw'): object {
  return { destination, type: 'bind', source, options: ['rbind', access] }
}
