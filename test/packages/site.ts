// The site for trials of an installed package of any form: a node for the package, a pod behind it and an internet, as in
// test/support/labs/lab-pod.ts. The package runs in the node's network namespace, with SETTINGS in its /etc/namegate.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DNS_4, podLab, type Pod } from '../support/labs/lab-pod.ts'
import type { Host } from '../support/labs/lab.ts'
import { SteadyLoad } from '../support/peers/steady-load.ts'

/** A name that the policy allows, and one that it denies. */
export const ALLOWED = 'www.shop.test'
export const REFUSED = 'www.other.example'
/** The name server of the internet. It answers every name with an address of its web server. */
export const SERVER = DNS_4

/** Protects the pod: the text of each file by its path in /etc/namegate. Allows names below test., and port 80 of their addresses. */
export const SETTINGS: Readonly<Record<string, string>> = {
  'endpoints.yaml': `endpoints:
  - { name: shop-1, addresses: [10.20.1.2, 'fd20:1::2'], labels: { app: shop }, interface: lxc1 }
`,
  'policies/shop.yaml': `apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: { name: shop }
spec:
  endpointSelector: { matchLabels: { app: shop } }
  egress:
    - toPorts: [{ ports: [{ port: '53', protocol: ANY }], rules: { dns: [{ matchPattern: '**.test' }] } }]
    - toFQDNs: [{ matchPattern: '**.test' }]
      toPorts: [{ ports: [{ port: '80', protocol: TCP }] }]
`,
}

export class PackageSite {
  readonly #lab = podLab()
  readonly #folder = mkdtempSync(join(tmpdir(), 'namegate-site-'))
  readonly load = new SteadyLoad()
  readonly node: Host = this.#lab.node
  readonly pod: Pod

  constructor() {
    const [pod] = this.#lab.pods
    if (pod === undefined) throw new Error('the lab has no pod')
    this.pod = pod
    writeFileSync(this.resolvConf, `nameserver ${SERVER}\n`)
  }

  /** A resolv.conf that names the server of the internet, for the pod and for the node. */
  get resolvConf(): string {
    return join(this.#folder, 'resolv.conf')
  }

  /** Starts the name server and the web server of the internet. */
  async serve(): Promise<void> {
    await this.load.serve(this.#lab.internet, SERVER)
    await this.#lab.startWebServer([80])
  }

  async close(): Promise<void> {
    await this.#lab.close()
    rmSync(this.#folder, { recursive: true, force: true })
  }
}
