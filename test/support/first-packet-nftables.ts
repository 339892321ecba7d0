// A lab whose node runs namegate over nftables, and a pod whose client connects as soon as it has an answer.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { nftablesMaker } from '../contract/nftables-bench.ts'
import { compileClient, parseAttempts, toolMissing, type Attempt } from './first-packets.ts'
import { canUseLab } from './lab.ts'
import { Namegate, type StartOptions } from './lab-namegate.ts'
import { podLab, type PodLab } from './lab-pod.ts'
import { addressAt, type Zones } from './zones.ts'

export const cannotRun =
  canUseLab() ??
  nftablesMaker.unavailable ??
  (toolMissing('gcc') ? 'gcc is not installed' : undefined)

const ZONE = { first4: '198.18.16.0', first6: '2001:db8:80:1::' }
const ZONES: Zones = { fresh: { 'fresh.test': ZONE } }
const POLICY = `
apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: { name: fresh }
spec:
  endpointSelector: { matchLabels: { app: client } }
  egress:
    - toFQDNs: [{ matchPattern: '*.fresh.test' }]
      toPorts: [{ ports: [{ port: '80', protocol: TCP }] }]
`
const ENDPOINT =
  "{ name: pod1, addresses: [10.20.1.2, 'fd20:1::2'], labels: { app: client }, interface: lxc1 }"

export class Run {
  readonly lab: PodLab = podLab()
  readonly folder = mkdtempSync(join(tmpdir(), 'namegate-first-packet-'))
  readonly namegate: Namegate
  #asked = 0

  constructor(config = '') {
    compileClient(this.client)
    this.namegate = new Namegate(this.lab, {
      policies: { 'fresh.yaml': POLICY },
      endpoints: [ENDPOINT],
      datapath: '{ kind: nftables }',
      config,
    })
  }

  get client(): string {
    return join(this.folder, 'first-packet')
  }

  get pod() {
    return this.lab.pods[0] ?? assert.fail('there is a pod')
  }

  async start(options: StartOptions = {}): Promise<void> {
    await Promise.all([this.lab.startNameServer(ZONES), this.lab.startWebServer()])
    await this.namegate.start({ ...options, attached: [] })
    if (options.writer !== undefined) return
    for (;;) {
      const [pod] = (await this.namegate.json('get', 'endpoints')) as { enforcing: boolean }[]
      if (pod?.enforcing === true) return
    }
  }

  async close(): Promise<void> {
    await this.namegate.close()
    await this.lab.close()
    rmSync(this.folder, { recursive: true, force: true })
  }

  /** Asks for the next names, in so many clients at once; no address was asked for before. */
  async ask(family: 4 | 6, count: number, waitMs = 0, clients = 1): Promise<Attempt[]> {
    const resolver = family === 4 ? this.pod.gateway4 : this.pod.gateway6
    const each = count / clients
    const outputs = Array.from({ length: clients }, async (_, i) => {
      const first = this.#asked + i * each
      const args = [resolver, family, first, each, 'fresh.test', waitMs].map(String)
      return await this.pod.host.run(this.client, args)
    })
    const first = family === 4 ? ZONE.first4 : ZONE.first6
    const coming = Array.from({ length: count }, (_, i) => addressAt(first, this.#asked + i))
    const attempts: Attempt[] = []
    for (const { code, stdout, stderr } of await Promise.all(outputs)) {
      assert.equal(code, 0, stderr + this.namegate.daemon.stderr)
      attempts.push(...parseAttempts(stdout))
    }
    this.#asked += count
    const answered = attempts.map(({ address }) => address)
    assert.deepEqual(answered.toSorted(), coming.toSorted())
    return attempts
  }

  /** `NOERROR`, `SERVFAIL`: what an answer to the pod says. */
  async statusOf(name: string): Promise<string> {
    const args = [`@${this.pod.gateway4}`, '+tries=1', '+timeout=8', name]
    const { stdout } = await this.pod.host.run('dig', args)
    return /status: (\w+)/.exec(stdout)?.[1] ?? 'none'
  }

  /** Ends the daemon; what became of answers. */
  async counters(): Promise<Record<string, number>> {
    await this.namegate.stop()
    const [line = '{}'] = /^\{.*\}$/m.exec(this.namegate.daemon.stdout) ?? []
    return JSON.parse(line) as Record<string, number>
  }
}
