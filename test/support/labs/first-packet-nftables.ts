// The lab of first packets over nftables.

import { nftablesMaker } from '../../contract/nftables-bench.ts'
import { FirstPacketLab } from './first-packet-lab.ts'
import { toolMissing } from '../peers/first-packets.ts'
import { canUseLab } from './lab.ts'
import type { StartOptions } from './lab-namegate.ts'

export const cannotRun =
  canUseLab() ??
  nftablesMaker.unavailable ??
  (toolMissing('gcc') ? 'gcc is not installed' : undefined)

export class Run extends FirstPacketLab {
  constructor(config = '') {
    super({ datapath: '{ kind: nftables }', config })
  }

  override async start(options: StartOptions = {}): Promise<void> {
    await super.start({ ...options, attached: [] })
    if (options.writer === undefined) await this.namegate.untilEnforced()
  }

  /** The status of an answer to the pod: `NOERROR`, `SERVFAIL`. */
  async statusOf(name: string): Promise<string> {
    const args = [`@${this.pod.gateway4}`, '+tries=1', '+timeout=8', name]
    const { stdout } = await this.pod.host.run('dig', args)
    return /status: (\w+)/.exec(stdout)?.[1] ?? 'none'
  }

  /** Ends the daemon. Returns its counters of answers. */
  async counters(): Promise<Record<string, number>> {
    await this.namegate.stop()
    const [line = '{}'] = /^\{.*\}$/m.exec(this.namegate.daemon.stdout) ?? []
    return JSON.parse(line) as Record<string, number>
  }
}
