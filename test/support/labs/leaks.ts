// Counts packets from pods at a host that should have passed through namegate: queries, and DNS over TLS or QUIC, that another sender than
// the node sent. The host answers them, so a leak also gives an answer.

import { setTimeout as sleep } from 'node:timers/promises'
import { outputIn, runIn } from './intercept-lab.ts'
import type { Host } from './lab.ts'

/** A socket that keeps asking asks several times in this time. */
const LONGER_MS = 200

let made = 0

export class Leaks {
  readonly #host: Host
  readonly #table: string

  /** `pods`: prefixes from which pods send, including forged ones. `only`: further matches of nftables. */
  constructor(host: Host, pods: readonly string[], only = '') {
    this.#host = host
    this.#table = `leaks${++made}`
    const rules = pods.flatMap((prefix) => {
      const source = `${prefix.includes(':') ? 'ip6' : 'ip'} saddr ${prefix}`
      return [
        `${source} ${only} udp dport { 53, 853 } counter`,
        `${source} ${only} tcp dport { 53, 853 } counter`,
      ]
    })
    const script = `table inet ${this.#table} { chain in { type filter hook prerouting priority -500; ${rules.join('; ')}; }; }`
    const { code, stderr } = runIn(host, ['nft', '-f', '-'], script)
    if (code !== 0) throw new Error(stderr)
  }

  /** Packets so far. */
  get count(): number {
    const text = outputIn(this.#host, 'nft', 'list', 'table', 'inet', this.#table)
    return [...text.matchAll(/packets (\d+)/g)].reduce(
      (sum, [, packets]) => sum + Number(packets),
      0,
    )
  }

  /** Packets while `act` runs, and a little longer. */
  async during(act: () => Promise<unknown>): Promise<number> {
    const from = this.count
    await act()
    await sleep(LONGER_MS)
    return this.count - from
  }
}
