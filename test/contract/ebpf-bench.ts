// The eBPF datapath for the contract suite: real maps and programs of this kernel in a network namespace of this process, pins in its own
// bpffs, and its own cgroup, which the process joins only while a cgroup endpoint is judged. `close` removes everything, at the latest with
// the process.

import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { EbpfDatapath } from '../../src/datapath/ebpf/adapter.ts'
import { cgroupMount } from '../../src/native/cgroup-mount.ts'
import { nativeFile } from '../../src/native/native-files.ts'
import { loadBpf, loadPosix, type Bpf, type Posix } from '../../src/native/native.ts'
import type { Bench, BenchMaker, Sizes } from './bench.ts'

/** Bounds of a datapath that a test makes itself, with few connections. */
export const SMALL_BOUNDS = {
  isInUse: () => false,
  connectionsPerEndpoint: 9,
  connections: 4096,
  endpointsMax: 16,
  tcpIdleMs: 1000,
  udpIdleMs: 1000,
}

const INTERFACES = 5

export interface EbpfBench extends Bench {
  readonly datapath: EbpfDatapath
  readonly bpf: Bpf
  readonly posix: Posix
  readonly pinPath: string
}

/** Shared by all benches of one process. */
let place: { readonly bpf: Bpf; readonly posix: Posix; readonly mount: string } | undefined

function placeOf(): NonNullable<typeof place> {
  if (place !== undefined) return place
  const [bpf, posix] = [loadBpf(), loadPosix()]
  must(posix.unshareNetwork(), 'unshare')
  for (let n = 1; n <= INTERFACES; n++)
    ip('link', 'add', `lxc${n}`, 'type', 'veth', 'peer', `peer${n}`)
  const mount = mkdtempSync(join(tmpdir(), 'namegate-bpf-'))
  must(posix.mountBpf(mount), 'mount')
  process.on('exit', () => {
    posix.unmount(mount)
    rmdirSync(mount)
  })
  place = { bpf, posix, mount }
  return place
}

let benches = 0

export function makeEbpfBench(sizes: Sizes = {}): EbpfBench {
  const { bpf, posix, mount } = placeOf()
  const pinPath = join(mount, `bench${++benches}`)
  const cgroup = new OwnCgroup()
  const make = (): EbpfDatapath => {
    const datapath = new EbpfDatapath({
      bpf,
      posix,
      pinPath,
      isInUse: () => false,
      sizes: {
        ng_ipcache: sizes.prefixes ?? 65_536,
        ng_hosts: sizes.prefixes ?? 65_536,
        ng_policy: sizes.policies ?? 65_536,
        ng_dns_source: 1024,
        ng_adopted: sizes.adopted ?? 1024,
      },
      connections: sizes.connections ?? 65_536,
      endpointsMax: 16,
      connectionsPerEndpoint: sizes.connectionsPerEndpoint ?? 65_536,
      tcpIdleMs: sizes.tcpIdleMs ?? 6 * 3_600_000,
      udpIdleMs: sizes.udpIdleMs ?? 180_000,
    })
    datapath.start()
    return datapath
  }
  let datapath = make()
  return {
    bpf,
    posix,
    pinPath,
    get datapath() {
      return datapath
    },
    judge: (endpoint, direction, frame) =>
      cgroup.within(() => datapath.judge(endpoint, direction, frame)),
    interfaceHook: (n) => ({ kind: 'interface', name: `lxc${n}`, side: 'ingress' }),
    ifindex: (n) => posix.ifIndex(`lxc${n}`),
    cgroupHook: () => ({ kind: 'cgroup', path: cgroup.make() }),
    restart: () => {
      datapath.stop({ leaveEnforcing: true })
      datapath = make()
    },
    close: () => {
      datapath.stop({ leaveEnforcing: false })
      cgroup.close()
    },
  }
}

/** A cgroup with only this process. */
class OwnCgroup {
  readonly #mount = cgroupMount() ?? ''
  readonly #name = `namegate-test-${process.pid}`
  #made = false

  make(): string {
    mkdirSync(join(this.#mount, this.#name), { recursive: true })
    this.#made = true
    return this.#name
  }

  /** Runs as a member, if the cgroup exists. Afterwards the process is back in its former cgroup. */
  within<T>(run: () => T): T {
    if (!this.#made) return run()
    const line = readFileSync('/proc/self/cgroup', 'utf8').match(/^0::(.*)$/m)
    const before = join(this.#mount, line?.[1] ?? '/', 'cgroup.procs')
    writeFileSync(join(this.#mount, this.#name, 'cgroup.procs'), String(process.pid))
    try {
      return run()
    } finally {
      writeFileSync(before, String(process.pid))
    }
  }

  close(): void {
    if (this.#made) rmdirSync(join(this.#mount, this.#name))
  }
}

export function ip(...args: readonly string[]): void {
  execFileSync('ip', [...args], { stdio: ['ignore', 'ignore', 'inherit'] })
}

function must(result: number, what: string): void {
  if (result < 0) throw new Error(`${what} failed: errno ${-result}`)
}

/** CAP_NET_ADMIN and CAP_SYS_ADMIN, which covers CAP_BPF. Root in a container can lack them. */
const NEEDED = (1n << 12n) | (1n << 21n)

function unavailable(): string | undefined {
  const status = readFileSync('/proc/self/status', 'utf8')
  const effective = BigInt(`0x${/^CapEff:\s*([0-9a-f]+)$/m.exec(status)?.[1] ?? '0'}`)
  if ((effective & NEEDED) !== NEEDED) return 'needs root (CAP_SYS_ADMIN, CAP_NET_ADMIN)'
  if (!existsSync(nativeFile('bpf.node'))) return 'the native part is not built'
  if (!existsSync(nativeFile('namegate.bpf.o'))) return 'the kernel programs are not built'
  if (cgroupMount() === undefined) return 'no cgroup2 file system is mounted'
  return undefined
}

export const ebpfMaker: BenchMaker = {
  name: 'ebpf',
  unavailable: unavailable(),
  make: (sizes) => makeEbpfBench(sizes),
}

/** Runs with a bench, and closes it afterwards. */
export function withEbpfBench(run: (bench: EbpfBench) => void, sizes: Sizes = {}): void {
  const bench = makeEbpfBench(sizes)
  try {
    run(bench)
  } finally {
    bench.close()
  }
}
