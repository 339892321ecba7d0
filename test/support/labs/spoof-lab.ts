// Ten clients of one pod, each with one query for the same name outstanding at all times, a slow true name server, and a spoofer that
// sends forged answers from the server's address. For the test and the long run.

import { setTimeout as sleep } from 'node:timers/promises'
import type { Output } from './lab-process.ts'
import { DNS_4, podLab, type PodLab } from './lab-pod.ts'
import { Namegate } from './lab-namegate.ts'
import { compiled } from '../peers/compiled.ts'
import { SteadyDns } from '../peers/steady-dns.ts'

const CLIENTS = 10
const NAME = 'bank.test'
/** How long a query is outstanding. It is shorter than the time to the next attempt, so each query has one true port and id. */
const DELAY_MS = 300
/** The node's address for the name server. */
const NODE_4 = '192.0.2.1'

const POLICY = `
apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: { name: all }
spec:
  endpointSelector: {}
  egress: [{ toFQDNs: [{ matchPattern: '*' }] }]
`

export interface Asked {
  readonly asked: number
  readonly true: number
  readonly forged: number
  readonly errors: number
}

export class SpoofLab {
  readonly lab: PodLab = podLab()
  readonly namegate: Namegate
  readonly #servers = new SteadyDns()
  readonly #program = compiled('spoof')
  readonly #clients = Array.from({ length: CLIENTS }, (_, i) => `10.20.1.${10 + i}`)

  constructor() {
    const [pod] = this.lab.pods
    for (const client of this.#clients) pod?.host.ip('addr', 'add', `${client}/24`, 'dev', 'eth0')
    this.namegate = new Namegate(this.lab, {
      policies: { 'all.yaml': POLICY },
      endpoints: [
        `{ name: pod, addresses: [${this.#clients.join(', ')}], labels: { app: pod }, interface: lxc1 }`,
      ],
    })
  }

  async start(): Promise<void> {
    await this.#servers.serve(this.lab.internet, DNS_4, { delayMs: DELAY_MS })
    await this.namegate.start()
  }

  /** Asks for `seconds` while forged answers arrive. Returns their number, and the answers to the clients. */
  async attack(
    how: { readonly kind: 'flood'; readonly rate: number } | { readonly kind: 'know' },
    seconds: number,
  ): Promise<Asked & { readonly sent: number }> {
    const [pod] = this.lab.pods
    if (pod === undefined) throw new Error('the lab has a pod')
    const asking = pod.host.start(this.#program, [
      'ask',
      pod.gateway4,
      NAME,
      `${seconds}`,
      ...this.#clients,
    ])
    await asking.untilOutput(/^ready$/m)
    // Queries are outstanding all the time, and clients ask a little longer than forged answers arrive.
    const aim = [DNS_4, NODE_4, NAME]
    const time = `${seconds - 0.5}`
    const args =
      how.kind === 'flood' ? ['flood', ...aim, `${how.rate}`, time] : ['know', ...aim, time]
    const limitMs = seconds * 1000 + 20_000
    const { stdout } = await this.lab.internet.run(this.#program, args, { limitMs })
    await sleep(500)
    const ended = await asking.ended(limitMs)
    return { ...readAsked(ended), sent: Number(stdout.trim().split('\n').at(-1)) }
  }

  async close(): Promise<void> {
    await this.namegate.close()
    await this.lab.close()
  }
}

function readAsked(output: Output | undefined): Asked {
  const line = output?.stdout.trim().split('\n').at(-1) ?? ''
  return JSON.parse(line) as Asked
}
