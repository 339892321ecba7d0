// Three nodes with a daemon and a pod each, and one internet behind them:
//
//   pod1 eth0 <-- veth --> lxc1 node1 wan0 <-- veth --> eth1 \
//   pod2 eth0 <-- veth --> lxc1 node2 wan0 <-- veth --> eth2 - internet
//   pod3 eth0 <-- veth --> lxc1 node3 wan0 <-- veth --> eth3 /
//
// Also a folder for the administrator: `ssh nN COMMAND` runs COMMAND on node N, where namegate is installed, from /.

import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { installedAt, installedPath } from './installed-host.ts'
import { Lab, type Host } from './lab.ts'
import { Namegate } from './lab-namegate.ts'
import { DNS_4, startHelper, WEB_4, WEB_6 } from './lab-pod.ts'
import { run, type Output } from './lab-process.ts'
import type { Zones } from '../peers/zones.ts'

const COMMAND_MS = 30_000

export interface Node {
  readonly number: number
  readonly host: Host
  readonly pod: Host
  readonly namegate: Namegate
  /** The server that the pod asks. */
  readonly resolver: string
}

export interface ThreeNodesOptions {
  readonly zones: Zones
  readonly ports: readonly number[]
  /** Label `app` of every pod. */
  readonly app: string
  /** More lines of every node's config. */
  readonly config: string
}

export class ThreeNodes {
  readonly nodes: readonly Node[]
  readonly #lab = new Lab()
  readonly #internet: Host
  /** The administrator's folder. */
  readonly folder = mkdtempSync(join(tmpdir(), 'three-nodes-'))
  readonly #options: ThreeNodesOptions

  constructor(options: ThreeNodesOptions) {
    this.#options = options
    this.#internet = this.#lab.addHost('internet')
    this.#internet.ip('address', 'add', `${DNS_4}/32`, 'dev', 'lo')
    this.#internet.ip('route', 'add', 'local', WEB_4, 'dev', 'lo')
    this.#internet.ip('-6', 'route', 'add', 'local', WEB_6, 'dev', 'lo')
    this.nodes = [1, 2, 3].map((number) => this.#addNode(number))
    this.#writeSsh()
  }

  /** Starts the daemons. Returns when every pod is fenced. */
  async start(): Promise<void> {
    const { zones, ports } = this.#options
    await Promise.all([
      startHelper(this.#internet, 'nameserver.ts', [DNS_4, '53', JSON.stringify(zones)]),
      startHelper(this.#internet, 'webserver.ts', [ports.join(',')]),
    ])
    // They start one after the other, so that each has its whole time limit to itself.
    for (const { namegate } of this.nodes) await namegate.start()
  }

  /** Runs a shell command of the administrator. */
  async sh(script: string): Promise<Output> {
    const env = { PATH: installedPath(join(this.folder, 'bin')), NO_COLOR: '1' }
    return await run('bash', ['-c', script], { cwd: this.folder, env, limitMs: COMMAND_MS })
  }

  async close(): Promise<void> {
    await Promise.all(this.nodes.map(async ({ namegate }) => await namegate.close()))
    await this.#lab.close()
    rmSync(this.folder, { recursive: true, force: true })
  }

  #addNode(number: number): Node {
    const { app, config } = this.#options
    const host = this.#lab.addHost(`node${number}`)
    const pod = this.#lab.addHost(`pod${number}`)
    host.sysctl('net.ipv4.ip_forward=1', 'net.ipv6.conf.all.forwarding=1')
    const [outside, inside] = [`10.99.${number}`, `10.20.${number}`]
    this.#lab.link(
      { host, interface: 'wan0', addresses: [`${outside}.1/24`, `fd99:${number}::1/64`] },
      {
        host: this.#internet,
        interface: `eth${number}`,
        addresses: [`${outside}.2/24`, `fd99:${number}::2/64`],
      },
    )
    this.#lab.link(
      { host, interface: 'lxc1', addresses: [`${inside}.1/24`, `fd20:${number}::1/64`] },
      { host: pod, interface: 'eth0', addresses: [`${inside}.2/24`, `fd20:${number}::2/64`] },
    )
    host.ip('route', 'add', 'default', 'via', `${outside}.2`)
    host.ip('-6', 'route', 'add', 'default', 'via', `fd99:${number}::2`)
    pod.ip('route', 'add', 'default', 'via', `${inside}.1`)
    pod.ip('-6', 'route', 'add', 'default', 'via', `fd20:${number}::1`)
    this.#internet.ip('route', 'add', `${inside}.0/24`, 'via', `${outside}.1`)
    this.#internet.ip('-6', 'route', 'add', `fd20:${number}::/64`, 'via', `fd99:${number}::1`)
    const resolver = `${inside}.1`
    const gateways = { interface: 'lxc1', gateway4: resolver, gateway6: `fd20:${number}::1` }
    const addresses = `['${inside}.2', 'fd20:${number}::2']`
    const namegate = new Namegate(
      { node: host, pods: [gateways] },
      {
        policies: {},
        endpoints: [
          `{ name: ${app}-${number}, addresses: ${addresses}, labels: { app: ${app} }, interface: lxc1 }`,
        ],
        config,
      },
    )
    return { number, host, pod, namegate, resolver }
  }

  #writeSsh(): void {
    const cases = this.nodes.map(({ number, host, namegate }) => {
      const enter = ['nsenter', `--net=/run/netns/${host.namespace}`, '--']
      const words = [...enter, ...installedAt(namegate.folder)].map((word) => `'${word}'`)
      const run = `exec ${words.join(' ')} sh -c "$*"`
      return `n${number}) shift; ${run} ;;`
    })
    const file = join(this.folder, 'bin', 'ssh')
    mkdirSync(dirname(file))
    writeFileSync(file, ['#!/bin/sh', 'case $1 in', ...cases, 'esac', ''].join('\n'))
    chmodSync(file, 0o755)
  }
}
