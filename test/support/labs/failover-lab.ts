// Four pods, and namegate in front of two name servers. Each server is a process that can be killed, stopped, slowed or made wrong.

import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { http } from '../nodes/admin.ts'
import { DNS_4, OTHER_DNS_4, podLab, type PodLab } from './lab-pod.ts'
import { Namegate } from './lab-namegate.ts'
import type { LabProcess } from './lab-process.ts'
import { monotonicMs, SteadyDns, type LoadResult } from '../peers/steady-dns.ts'

const PODS = 4
/** In the order of the configuration. */
export const SERVERS = [DNS_4, OTHER_DNS_4] as const

const POLICY = `
apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: { name: all }
spec:
  endpointSelector: {}
  egress: [{ toFQDNs: [{ matchPattern: '*' }] }]
`

export interface UpstreamStatus {
  readonly address: string
  readonly state: string
  readonly first: boolean
}

export class FailoverLab {
  readonly lab: PodLab = podLab({ pods: PODS })
  readonly tool = new SteadyDns()
  readonly namegate: Namegate
  readonly servers: LabProcess[] = []

  constructor(config = '') {
    this.namegate = new Namegate(this.lab, {
      policies: { 'all.yaml': POLICY },
      endpoints: this.lab.pods.map(
        ({ address4, interface: veth }, i) =>
          `{ name: pod${i}, addresses: [${address4}], labels: { app: pod }, interface: ${veth} }`,
      ),
      upstream: SERVERS.map((server) => `${server}:53`).join("', '"),
      config,
    })
  }

  async start(): Promise<void> {
    for (const server of SERVERS) this.servers.push(await this.#serve(server, {}))
    await this.namegate.start()
  }

  /** Kills a server and starts it again with another behaviour. */
  async serve(number: number, options: { rcode?: number; delayMs?: number } = {}): Promise<void> {
    this.signal(number, 'SIGCONT')
    this.signal(number, 'SIGKILL')
    await this.servers[number]?.ended(2000)
    this.servers[number] = await this.#serve(SERVERS[number] ?? DNS_4, options)
  }

  signal(number: number, signal: NodeJS.Signals): void {
    this.servers[number]?.kill(signal)
  }

  async load(rate: number, seconds: number): Promise<LoadResult> {
    const clients = this.lab.pods.map(({ host, gateway4 }) => ({ host, server: gateway4 }))
    return await this.tool.load(clients, rate, seconds)
  }

  /** Runs load while something happens. Also returns how long after it queries were still slower than 20 ms. */
  async loadWith(
    rate: number,
    seconds: number,
    event: () => void | Promise<void>,
  ): Promise<LoadResult & { readonly recoveryMs: number }> {
    const running = this.load(rate, seconds)
    await sleep((seconds * 1000) / 3)
    const at = monotonicMs()
    await event()
    const result = await running
    return { ...result, recoveryMs: Math.max(0, result.lastSlowMs - at) }
  }

  async upstreams(): Promise<readonly UpstreamStatus[]> {
    const socketPath = join(this.namegate.folder, 'admin.sock')
    const { text } = await http({ socketPath }, '/v1/status')
    return (JSON.parse(text) as { upstreams: UpstreamStatus[] }).upstreams
  }

  /** Waits until `check` accepts the upstreams' states. */
  async until(
    check: (states: readonly UpstreamStatus[]) => boolean,
    limitMs = 20_000,
  ): Promise<void> {
    const deadline = performance.now() + limitMs
    for (;;) {
      const states = await this.upstreams()
      if (check(states)) return
      if (performance.now() > deadline) throw new Error(`upstreams are ${JSON.stringify(states)}`)
      await sleep(50)
    }
  }

  async close(): Promise<void> {
    await this.namegate.close()
    for (const server of this.servers) server.kill('SIGCONT')
    await this.lab.close()
  }

  async #serve(
    address: string,
    options: { rcode?: number; delayMs?: number },
  ): Promise<LabProcess> {
    return await this.tool.serve(this.lab.internet, address, options)
  }
}
