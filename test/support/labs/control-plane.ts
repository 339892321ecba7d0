// A real control plane (etcd and kube-apiserver) inside a host of a lab, and a client that makes objects in it. NAMEGATE_TESTBED is the
// folder with the programs. Without it, the tests of a real control plane are skipped.

import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { Host } from './lab.ts'
import { run, type Output } from './lab-process.ts'

const SCRIPT =
  process.env['NAMEGATE_TESTBED'] && join(process.env['NAMEGATE_TESTBED'], 'cluster.sh')
/** Unpacked programs, used by all tests of this checkout. */
const CACHE = fileURLToPath(new URL('../../../build/testbed', import.meta.url))
const PORT = 26_443
const CLIENTS = [
  ['etcd-client', 'etcdctl'],
  ['kubernetes-client', 'kubectl'],
] as const

/** The reason why no control plane can be started here, or undefined. */
export function canUseControlPlane(): string | undefined {
  return SCRIPT !== undefined && existsSync(SCRIPT)
    ? undefined
    : 'NAMEGATE_TESTBED names no folder with a control plane'
}

/** Gets the client programs. The script cannot, because its namespace does not reach the network. */
async function fillCache(): Promise<void> {
  mkdirSync(CACHE, { recursive: true })
  for (const [name, file] of CLIENTS) {
    if (existsSync(join(CACHE, file))) continue
    const folder = mkdtempSync(join(tmpdir(), 'ng-test-client-'))
    const steps = `cd ${folder} && apt-get download -qq ${name} && dpkg-deb -x ${name}_*.deb . && mv usr/bin/${file} ${CACHE}/`
    const { code, stderr } = await run('sh', ['-c', steps], { limitMs: 60_000 })
    rmSync(folder, { recursive: true, force: true })
    if (code !== 0) throw new Error(`cannot get ${name}: ${stderr}`)
  }
}

export class ControlPlane {
  readonly folder = mkdtempSync(join(tmpdir(), 'ng-test-control-plane-'))
  readonly host: Host

  constructor(host: Host) {
    this.host = host
  }

  get kubeconfig(): string {
    return join(this.folder, 'kubeconfig')
  }

  get port(): number {
    return PORT
  }

  /** The certificate of the authority that the servers' own certificates name. */
  get authority(): string {
    return join(this.folder, 'certs/apiserver.crt')
  }

  /** `kubectl apply` of manifests, with each field checked. Returns the kinds. Throws the message of kubectl. */
  async apply(text: string): Promise<readonly string[]> {
    const file = join(this.folder, 'manifests.yaml')
    writeFileSync(file, text)
    const { code, stdout, stderr } = await this.kubectl(['apply', '--validate=true', '-f', file])
    if (code !== 0) throw new Error(`${stdout}${stderr}`)
    return stdout.trim().split('\n')
  }

  /** kubectl with the rights of the administrator. `program` defaults to the version of Debian 12, which is as old as the servers. */
  async kubectl(args: readonly string[], program = join(CACHE, 'kubectl')): Promise<Output> {
    const all = ['--kubeconfig', this.kubeconfig, '--cache-dir', join(this.folder, 'cache')]
    return await this.host.run(program, [...all, ...args], { limitMs: 60_000 })
  }

  async start(): Promise<void> {
    await fillCache()
    // One start at a time unpacks the programs. With -o, the servers do not keep the lock.
    const start = ['-o', join(CACHE, 'lock'), 'bash', SCRIPT ?? '', 'up']
    await this.#run('flock', [...start, this.folder, String(PORT)])
  }

  async close(): Promise<void> {
    const down = ['-c', `bash ${SCRIPT} down $0; kill -CONT $(cat $0/*.pid) 2>/dev/null; true`]
    await this.#run('bash', [...down, this.folder])
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
  }

  /** Writes a kubeconfig with the rights of the service account namegate/namegate. */
  nodeKubeconfig(): string {
    const path = join(this.folder, 'kubeconfig-node')
    const text = readFileSync(this.kubeconfig, 'utf8')
    writeFileSync(path, text.replace('current-context: admin', 'current-context: node'))
    return path
  }

  /** Sends a request until the server accepts it. */
  async retry(method: string, path: string, body?: object): Promise<unknown> {
    for (let left = 100; ; left--) {
      try {
        return await this.request(method, path, body)
      } catch (error) {
        if (left === 0) throw error
        await sleep(200)
      }
    }
  }

  /** Kills a server like a crash. Waits until its port is free, because a server that starts earlier ends at once. */
  async kill(server: 'etcd' | 'apiserver'): Promise<void> {
    const wait = 'while kill -0 $pid 2>/dev/null; do sleep 0.02; done'
    const command = `pid=$(cat ${this.folder}/${server}.pid); kill -9 $pid; ${wait}`
    await this.#run('bash', ['-c', command])
  }

  /** Stops a server without an end: it keeps its connections and answers nothing. A new start would take seconds of processor time. */
  async silence(server: 'etcd' | 'apiserver'): Promise<void> {
    await this.#signal('STOP', server)
  }

  /** Lets a silent server go on. */
  async continue(server: 'etcd' | 'apiserver'): Promise<void> {
    await this.#signal('CONT', server)
  }

  async #signal(signal: string, server: string): Promise<void> {
    await this.#run('bash', ['-c', `kill -${signal} $(cat ${this.folder}/${server}.pid)`])
  }

  /** Starts a killed server again. */
  async again(server: 'etcd' | 'apiserver'): Promise<void> {
    await this.#run('bash', [join(this.folder, `start-${server}`)])
  }

  /** Makes etcd forget the history of all objects. */
  async compact(): Promise<void> {
    const etcdctl = `ETCDCTL_API=3 ${join(CACHE, 'etcdctl')} --endpoints http://127.0.0.1:${PORT + 5}`
    const revision = `${etcdctl} put /namegate/compact x -w json | grep -o '"revision":[0-9]*' | cut -d: -f2`
    await this.#run('bash', ['-c', `set -e; ${etcdctl} compact $(${revision})`])
  }

  /** Sends one request with the rights of the administrator. Throws the server's answer if the server refuses it. */
  async request(method: string, path: string, body?: object): Promise<unknown> {
    const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json'
    const url = `https://127.0.0.1:${PORT}${path}`
    const head = ['-H', 'Authorization: Bearer admintoken', '-H', `Content-Type: ${type}`]
    const data = body === undefined ? [] : ['--data-binary', JSON.stringify(body)]
    const args = ['-sk', '--fail-with-body', '-m', '10', '-X', method, ...head, ...data, url]
    const { code, stdout, stderr } = await this.host.run('curl', args, { limitMs: 15_000 })
    if (code !== 0) throw new Error(`${method} ${path}: ${stdout}${stderr}`)
    return JSON.parse(stdout)
  }

  /** Makes a pod of a node with its address, as kubelet and CNI do. */
  async addPod(pod: {
    readonly namespace: string
    readonly name: string
    readonly node: string
    readonly addresses: readonly string[]
    readonly labels: Readonly<Record<string, string>>
  }): Promise<void> {
    const { namespace, name, node, addresses, labels } = pod
    const path = `/api/v1/namespaces/${namespace}/pods`
    const containers = [{ name: 'a', image: 'a' }]
    await this.request('POST', path, {
      metadata: { name, labels },
      spec: { nodeName: node, containers },
    })
    const podIPs = addresses.map((ip) => ({ ip }))
    const status = { phase: 'Running', podIP: addresses[0], podIPs }
    await this.request('PATCH', `${path}/${name}/status`, { status })
  }

  async #run(command: string, args: readonly string[]): Promise<void> {
    const env = { TESTBED_CACHE: CACHE }
    const { code, stdout, stderr } = await this.host.run(command, args, { env, limitMs: 120_000 })
    if (code !== 0) throw new Error(`${command} ${args.join(' ')}: ${stdout}${stderr}`)
  }
}
