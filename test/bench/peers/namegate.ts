// namegate like in production: the built release, enforcing with eBPF on the pod's interface, metrics on, one policy with four wildcard
// selectors, default deny. Before a turn counts, the endpoint must be enforced. After it, the metrics show how many answers were released as
// exact.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { pinLockFile } from '../../../src/state/lock.ts'
import { pinNoteFile } from '../../../src/daemon/noted-pins.ts'
import { DNS_4 } from '../../support/labs/lab-pod.ts'
import type { LabProcess, Output } from '../../support/labs/lab-process.ts'
import type { LeftOut, Running, Subject } from './proxy.ts'
import type { Release } from './release.ts'
import { SUFFIX, type Stage } from './stage.ts'
import type { LoadName } from './subjects.ts'

const READY_LIMIT_MS = 20_000
const METRICS = '127.0.0.1:9465'
const ZONES = [0, 1, 2, 3].map((zone) => `"*.z${zone}.${SUFFIX}"`)
const PORT = 10_053

/** The settings for new names. Keys that this build does not know are left out and named. */
const FOR_NEW: readonly (readonly [section: string, setting: string])[] = [
  ['limits', 'names-per-wildcard: 1000000'],
  ['limits', 'wildcard-names-per-endpoint: 1000000'],
  ['limits', 'pairs-per-endpoint: 1000000'],
  ['dns', 'grace-after-ttl: 1s'],
]

const POLICY = `apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: { name: bench, namespace: default }
spec:
  endpointSelector: { matchLabels: { app: bench } }
  egress:
    - toPorts:
        - ports: [{ port: "53", protocol: ANY }]
          rules: { dns: [${ZONES.map((zone) => `{ matchPattern: ${zone} }`).join(', ')}] }
    - toFQDNs: [${ZONES.map((zone) => `{ matchPattern: ${zone} }`).join(', ')}]
      toPorts: [{ ports: [{ port: "443", protocol: TCP }] }]
`

export type Variant =
  | 'namegate'
  | 'namegate-default-bounds'
  | 'namegate-tproxy'
  | 'namegate-nftables'

/** The subject, or the reason why this build cannot be it. `profile`: more flags of Node. */
export async function mkNamegate(
  stage: Stage,
  release: Release,
  name: Variant,
  profile?: readonly string[],
): Promise<Subject | LeftOut> {
  const folder = new Folder(stage, release, name)
  try {
    const base = await folder.check([])
    if (base !== undefined) {
      return {
        name,
        reason: `${name === 'namegate-tproxy' ? 'not built' : 'configuration refused'}: ${base}`,
      }
    }
    const bounded = name === 'namegate' || name === 'namegate-nftables'
    const [taken, refused] = bounded ? await folder.probe(FOR_NEW) : [[], []]
    const lines = linesOf(taken)
    const without =
      refused.length === 0 ? '' : `; not built, left at default: ${refused.join(', ')}`
    const extra = lines.length === 0 ? '' : `; for new: ${lines.join('; ')}${without}`
    const mode = name === 'namegate-tproxy' ? 'tproxy' : 'explicit'
    const settings = `${mode}, datapath ${folder.datapath}, metrics on, one worker${extra}`
    const start = async (load: LoadName): Promise<Running> =>
      await startNamegate(stage, release, name, load === 'new' ? lines : [], profile)
    return { name, settings, start }
  } finally {
    folder.remove()
  }
}

function linesOf(settings: typeof FOR_NEW): readonly string[] {
  return [...new Set(settings.map(([section]) => section))].map((section) => {
    const inside = settings.filter(([each]) => each === section).map(([, text]) => text)
    return `${section}: { ${inside.join(', ')} }`
  })
}

async function startNamegate(
  stage: Stage,
  release: Release,
  variant: Variant,
  lines: readonly string[],
  profile?: readonly string[],
): Promise<Running> {
  const folder = new Folder(stage, release, variant)
  folder.write(lines)
  const main = join(release.folder, 'dist/src/main.js')
  const args = ['run', '--config', folder.config]
  const child =
    profile === undefined
      ? stage.start(release.command, args, { NO_COLOR: '1' })
      : stage.start(process.execPath, ['--max-semi-space-size=16', ...profile, main, ...args])
  const stop = async () => {
    child.kill('SIGTERM')
    if ((await child.ended(10_000)) === undefined) await child.stop()
    await folder.run('datapath', 'detach')
    folder.remove()
  }
  try {
    await folder.untilEnforcing(child)
  } catch (error) {
    await stop()
    throw error
  }
  const server = variant === 'namegate-tproxy' ? DNS_4 : stage.pod.gateway4
  return { pid: child.pid, server, note: async () => await readOutcomes(stage), stop }
}

/** `exact 123, degraded 4` from the metrics of the running daemon. */
async function readOutcomes(stage: Stage): Promise<string> {
  const { stdout } = await stage.lab.node.run('curl', ['-s', `http://${METRICS}/metrics`])
  const wanted = /^\w*(?:dns_answers|names_refused|limit_hits)_total\{[^}]*"([^"}]+)"\} (\d+)$/gm
  const found = [...stdout.matchAll(wanted)].map(([, key, value]) => ({ key, value }))
  return found
    .filter(({ value }) => value !== '0')
    .map(({ key, value }) => `${key} ${value}`)
    .join(', ')
}

/** Files of one daemon: config, policy, endpoints, state, and its pins. */
class Folder {
  readonly #path = mkdtempSync(join(tmpdir(), 'namegate-peers-'))
  readonly #pins: string
  readonly #stage: Stage
  readonly #release: Release
  readonly #tproxy: boolean
  readonly datapath: 'ebpf' | 'nftables'

  constructor(stage: Stage, release: Release, variant: Variant) {
    this.#stage = stage
    this.#release = release
    this.#tproxy = variant === 'namegate-tproxy'
    this.datapath = variant === 'namegate-nftables' ? 'nftables' : 'ebpf'
    this.#pins = join('/sys/fs/bpf', `ng-peers-${process.pid}`)
    const { address4, interface: link } = stage.pod
    const endpoint = `name: pod, addresses: [${address4}], labels: { app: bench }, interface: ${link}`
    mkdirSync(join(this.#path, 'policies'))
    writeFileSync(join(this.#path, 'policies/bench.yaml'), POLICY)
    writeFileSync(join(this.#path, 'endpoints.yaml'), `endpoints: [{ ${endpoint} }]\n`)
  }

  get config(): string {
    return join(this.#path, 'namegate.yaml')
  }

  write(lines: readonly string[]): void {
    const { gateway4, interface: link } = this.#stage.pod
    const listener = this.#tproxy
      ? `{ port: ${PORT}, mode: tproxy, interfaces: [${link}] }`
      : `{ address: ${gateway4}, port: 53, mode: explicit }`
    const text = [
      `listeners: [${listener}]`,
      ...(this.#tproxy ? ['intercept: { on-start: true, on-exit: open }'] : []),
      `upstreams: { servers: ['${DNS_4}:53'] }`,
      `policies: { paths: ['${this.#path}/policies'] }`,
      `endpoints: { files: ['${this.#path}/endpoints.yaml'] }`,
      `datapath: { kind: ${this.datapath}, ebpf: { pin-path: '${this.#pins}' } }`,
      `state: { directory: '${this.#path}/state' }`,
      `admin: { socket: '${this.#path}/admin.sock' }`,
      `metrics: { address: 127.0.0.1, port: ${METRICS.split(':')[1]} }`,
      ...lines,
    ]
    writeFileSync(this.config, `${text.join('\n')}\n`)
  }

  async run(...args: readonly string[]): Promise<Output> {
    const all = [...args, '--config', this.config]
    return await this.#stage.lab.node.run(this.#release.command, all, { env: { NO_COLOR: '1' } })
  }

  /** The fault of `config check` in these lines. */
  async check(lines: readonly string[]): Promise<string | undefined> {
    this.write(lines)
    const { code, stdout, stderr } = await this.#stage.lab.node.run(this.#release.command, [
      'config',
      'check',
      this.config,
    ])
    return code === 0 ? undefined : `${stdout}${stderr}`.trim().split('\n')[0]
  }

  async probe(
    settings: typeof FOR_NEW,
  ): Promise<readonly [taken: typeof FOR_NEW, refused: readonly string[]]> {
    const refused = new Set<string>()
    for (const [section, text] of settings) {
      if ((await this.check([`${section}: { ${text} }`])) !== undefined) refused.add(text)
    }
    return [settings.filter(([, text]) => !refused.has(text)), [...refused]]
  }

  /** Waits until the daemon is ready and reports that the kernel enforces the endpoint. */
  async untilEnforcing(child: LabProcess): Promise<void> {
    const deadline = performance.now() + READY_LIMIT_MS
    for (;;) {
      const ready = await this.run('status', '--ready')
      const { stdout } = await this.run('get', 'endpoints', '-o', 'json')
      if (ready.code === 0 && /"enforcing": ?true/.test(stdout)) return
      if (!child.running || performance.now() > deadline) {
        const said = `${ready.stdout}${ready.stderr}${child.stdout}${child.stderr}`
        throw new Error(`namegate did not come to enforce\n${said}`)
      }
      await sleep(20)
    }
  }

  remove(): void {
    rmSync(this.#pins, { recursive: true, force: true })
    rmSync(pinLockFile(this.#pins), { force: true })
    rmSync(pinNoteFile(this.config), { force: true })
    rmSync(this.#path, { recursive: true, force: true })
  }
}
