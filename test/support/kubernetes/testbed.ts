// The real control plane of the testbed, if NAMEGATE_TESTBED names its folder: etcd, kube-apiserver 1.20.2, and a server for custom resources
// with the API machinery of 1.36.4. It starts once for a test file, and takes some seconds.

import { execFile, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { messageOf } from '../../../src/core/errors.ts'
import { isTcpFree } from '../nodes/free-port.ts'
import { accessOf, type Cluster } from './cluster.ts'
import { write } from './write.ts'

const run = promisify(execFile)
const FOLDER = process.env['NAMEGATE_TESTBED'] ?? ''

/** The reason to skip tests on the real control plane; false if they can run. */
export const NO_TESTBED =
  FOLDER === ''
    ? 'NAMEGATE_TESTBED does not name a testbed'
    : existsSync(join(FOLDER, 'cluster.sh'))
      ? process.getuid?.() === 0 && process.arch === 'x64'
        ? false
        : 'the testbed needs root on amd64'
      : `${FOLDER} has no cluster.sh`

export interface Testbed {
  readonly clusters: readonly Cluster[]
  /** The process of kube-apiserver. */
  readonly pid: number
  /** Kills kube-apiserver as a crash does. */
  kill(): void
  /** Starts kube-apiserver again, and does not wait until it serves. */
  again(): void
  stop(): Promise<void>
}

/** Starts the testbed. Returns the reason if it does not start, for example without the registry of Debian. */
export async function startTestbed(): Promise<Testbed | string> {
  const folder = mkdtempSync(join(tmpdir(), 'namegate-testbed-'))
  const cache = resolve('build', 'testbed')
  mkdirSync(cache, { recursive: true })
  const port = await freePorts()
  const env = { ...process.env, TESTBED_CACHE: cache }
  const script = join(FOLDER, 'cluster.sh')
  const end = (): void => {
    spawnSync('bash', [script, 'down', folder], { env })
  }
  process.on('exit', end)
  process.once('SIGTERM', () => process.exit(1))
  const stop = async (): Promise<void> => {
    end()
    process.off('exit', end)
    await untilEnded(folder)
    rmSync(folder, { recursive: true, force: true })
  }
  try {
    // One start at a time unpacks the programs. With -o, the servers do not keep the lock.
    const start = ['-o', join(cache, 'lock'), 'bash', script, 'up-1.36', folder, String(port)]
    await run('flock', start, { env, timeout: 180_000 })
  } catch (error) {
    await stop()
    return `the testbed does not start: ${messageOf(error).trim().split('\n').at(-1)}`
  }
  const etcd = async (...args: readonly string[]): Promise<void> => {
    const endpoint = `http://127.0.0.1:${port + 5}`
    await run(join(cache, 'etcdctl'), ['--endpoints', endpoint, ...args], {
      env: { ...process.env, ETCDCTL_API: '3' },
    })
  }
  const parts = { port, etcd }
  const pid = (): number => Number(readFileSync(join(folder, 'apiserver.pid'), 'utf8'))
  return {
    clusters: [realCluster(parts, false), realCluster(parts, true)],
    get pid() {
      return pid()
    },
    kill: () => void process.kill(pid(), 'SIGKILL'),
    again: () => void spawnSync('bash', [join(folder, 'start-apiserver')], { env }),
    stop,
  }
}

/** Waits until the servers have ended, whose process ids are in files. */
async function untilEnded(folder: string): Promise<void> {
  const files = readdirSync(folder).filter((name) => name.endsWith('.pid'))
  const pids = files.map((name) => readFileSync(join(folder, name), 'utf8').trim())
  for (let i = 0; i < 100 && pids.some((pid) => existsSync(`/proc/${pid}`)); i++) {
    await new Promise((done) => setTimeout(done, 100))
  }
}

interface Parts {
  readonly port: number
  readonly etcd: (...args: readonly string[]) => Promise<void>
}

function realCluster({ port, etcd }: Parts, isNew: boolean): Cluster {
  const main = `https://127.0.0.1:${port}`
  const origin = isNew ? `https://127.0.0.1:${port + 2}` : main
  return {
    name: isNew ? 'the API machinery of 1.36.4' : 'kube-apiserver 1.20.2',
    isNew,
    access: (token) => accessOf(origin, token),
    write: async (method, path, body) => await write(origin, method, path, body),
    async compact() {
      await etcd('put', '/namegate/compact', 'x')
      const revision = await currentRevision(port)
      await etcd('compact', String(revision))
    },
    // Both servers ask kube-apiserver for the rights.
    setRight: async (resource, isGiven) => await setRight(main, resource, isGiven),
    setDefinition: async (resource, isThere) => await setDefinition(origin, resource, isThere),
    close: async () => await Promise.resolve(),
  }
}

async function currentRevision(port: number): Promise<number> {
  const response = await fetch(`http://127.0.0.1:${port + 5}/v3/kv/range`, {
    method: 'POST',
    body: JSON.stringify({ key: Buffer.from('/namegate').toString('base64') }),
  })
  const text = await response.text()
  return Number(/"revision":"(\d+)"/.exec(text)?.[1] ?? 0)
}

async function setRight(main: string, resource: string, isGiven: boolean): Promise<void> {
  const rbac = '/apis/rbac.authorization.k8s.io/v1'
  const metadata = { name: `test-${resource}` }
  if (!isGiven) {
    await write(main, 'DELETE', `${rbac}/clusterrolebindings/${metadata.name}`)
    await write(main, 'DELETE', `${rbac}/clusterroles/${metadata.name}`)
    return
  }
  await write(main, 'POST', `${rbac}/clusterroles`, {
    metadata,
    rules: [{ apiGroups: ['*'], resources: [resource], verbs: ['list', 'watch'] }],
  })
  await write(main, 'POST', `${rbac}/clusterrolebindings`, {
    metadata,
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: metadata.name },
    subjects: [{ kind: 'ServiceAccount', namespace: 'namegate', name: 'namegate' }],
  })
}

async function setDefinition(origin: string, resource: string, isThere: boolean): Promise<void> {
  const path = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
  if (!isThere) {
    await write(origin, 'DELETE', `${path}/${resource}.cilium.io`)
    return
  }
  const text = readFileSync(join(FOLDER, `crd-${resource}.json`), 'utf8')
  const body: unknown = JSON.parse(text)
  // The old definition can still be on its way out.
  for (let i = 0; i < 50 && (await write(origin, 'POST', path, body)) === 409; i++) {
    await new Promise((done) => setTimeout(done, 200))
  }
}

/** A port below those of clients, where the ports that the testbed uses are free. */
async function freePorts(): Promise<number> {
  for (let port = 20_000 + (process.pid % 900) * 10; port < 32_000; port += 10) {
    const used = [0, 2, 5, 6].map((each) => isTcpFree(port + each))
    if ((await Promise.all(used)).every(Boolean)) return port
  }
  throw new Error('no free ports for the testbed')
}
