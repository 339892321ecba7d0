// Packets from a pod to addresses of the internet, sent without regard to errors, and counters of those that pass. For tests of the time
// between a boot and the daemon.

import assert from 'node:assert/strict'
import type { Host } from '../labs/lab.ts'
import type { LabProcess } from '../labs/lab-process.ts'

export const BOOT_PORT = 7000
const EVERY_MS = 5

/** Sends a UDP datagram to each address every 5 ms. */
export async function startSender(pod: Host, addresses: readonly string[]): Promise<LabProcess> {
  const script = `
const dgram = require('dgram')
for (const target of ${JSON.stringify(addresses)}) {
  const socket = dgram.createSocket(target.includes(':') ? 'udp6' : 'udp4')
  socket.on('error', () => undefined)
  socket.bind(0, () => setInterval(() => socket.send('x', ${BOOT_PORT}, target, () => undefined), ${EVERY_MS}))
}
console.log('ready')`
  const sender = pod.start(process.execPath, ['-e', script])
  await sender.untilOutput(/^ready$/m)
  return sender
}

/** Counts the packets that reach a host, by address. */
export class Counter {
  readonly #host: Host

  constructor(host: Host) {
    this.#host = host
  }

  async begin(addresses: readonly string[]): Promise<void> {
    const rules = addresses.map((address) => {
      return `${address.includes(':') ? 'ip6' : 'ip'} daddr ${address} counter`
    })
    const chain = `type filter hook prerouting priority -400; ${rules.join('; ')};`
    const { code, stderr } = await this.#host.run('nft', [
      `table inet seen { chain seen { ${chain}\n}\n}`,
    ])
    assert.equal(code, 0, stderr)
  }

  /** Packets by address. */
  async read(): Promise<Readonly<Record<string, number>>> {
    const { stdout } = await this.#host.run('nft', ['list', 'chain', 'inet', 'seen', 'seen'])
    const lines = [...stdout.matchAll(/daddr (\S+) counter packets (\d+)/g)]
    return Object.fromEntries(lines.map(([, address = '', count]) => [address, Number(count)]))
  }
}

/** Packets that came in by an interface, from the JSON of `ip -s -j link show NAME`. */
export function receivedIn(json: string): number {
  const [link] = JSON.parse(json) as { stats64: { rx: { packets: number } } }[]
  return link?.stats64.rx.packets ?? 0
}
