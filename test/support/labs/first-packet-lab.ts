// A lab whose node runs namegate, and a pod whose client connects as soon as it has an answer. Each name it asks is new and gets the
// zone's next address.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { compiled } from '../peers/compiled.ts'
import { parseAttempts, type Attempt } from '../peers/first-packets.ts'
import type { NamegateOptions } from './lab-namegate-config.ts'
import { Namegate, type StartOptions } from './lab-namegate.ts'
import { podLab, type PodLab } from './lab-pod.ts'
import { addressAt, type Zones } from '../peers/zones.ts'

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

export class FirstPacketLab {
  readonly lab: PodLab = podLab()
  readonly folder = mkdtempSync(join(tmpdir(), 'namegate-first-packet-'))
  readonly namegate: Namegate
  readonly client = compiled('first-packet')
  /** Number of names asked so far. */
  #asked = 0

  constructor(options: Partial<NamegateOptions> = {}) {
    const policies = { 'fresh.yaml': POLICY }
    this.namegate = new Namegate(this.lab, { policies, endpoints: [ENDPOINT], ...options })
  }

  get pod() {
    return this.lab.pods[0] ?? assert.fail('there is a pod')
  }

  async start(options: StartOptions = {}): Promise<void> {
    await Promise.all([this.lab.startNameServer(ZONES), this.lab.startWebServer()])
    await this.namegate.start(options)
  }

  async close(): Promise<void> {
    await this.namegate.close()
    await this.lab.close()
    rmSync(this.folder, { recursive: true, force: true })
  }

  /** The addresses that the next names will get. */
  coming(family: 4 | 6, count: number): string[] {
    const first = family === 4 ? ZONE.first4 : ZONE.first6
    return Array.from({ length: count }, (_, i) => addressAt(first, this.#asked + i))
  }

  /** The arguments that make the client ask the next `count` names, after skipping `skip` names. */
  clientArgs(family: 4 | 6, count: number, waitMs: number, skip = 0): string[] {
    const resolver = family === 4 ? this.pod.gateway4 : this.pod.gateway6
    return [resolver, family, this.#asked + skip, count, 'fresh.test', waitMs].map(String)
  }

  /** Records that the next names were asked. */
  passed(count: number): void {
    this.#asked += count
  }

  /** Asks for the next names, with several clients at once. */
  async ask(family: 4 | 6, count: number, waitMs = 0, clients = 1): Promise<Attempt[]> {
    const coming = this.coming(family, count)
    const each = count / clients
    const outputs = Array.from({ length: clients }, async (_, i) => {
      const args = this.clientArgs(family, each, waitMs, i * each)
      return await this.pod.host.run(this.client, args)
    })
    const attempts: Attempt[] = []
    for (const { code, stdout, stderr } of await Promise.all(outputs)) {
      assert.equal(code, 0, stderr + this.namegate.daemon.stderr)
      attempts.push(...parseAttempts(stdout))
    }
    this.passed(count)
    const answered = attempts.map(({ address }) => address)
    assert.deepEqual(answered.toSorted(), coming.toSorted())
    return attempts
  }
}
