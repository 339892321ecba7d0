// Opens what keeps the daemon's flows: the outputs that the config names, and the keeper that gives them lines.

import { hostname } from 'node:os'
import { join } from 'node:path'
import type { Config } from '../config/config.ts'
import type { FlowRing } from '../flows/record/flow-ring.ts'
import type { Clock } from '../core/clock.ts'
import { FlowFiles } from '../flows/flow-files.ts'
import { FLOW_FOLDER, readFlowFolder } from '../flows/flow-folder.ts'
import type { DescribeFlow } from '../flows/flow-tally.ts'
import { FlowKeeper } from '../flows/flow-keeper.ts'
import { StreamOutput, SyslogOutput, type FlowOutput } from '../flows/flow-outputs.ts'
import type { Log } from '../telemetry/log.ts'

export class KeptFlows {
  readonly keeper: FlowKeeper
  /** Undefined when no flows are kept on disk. */
  readonly files: FlowFiles | undefined
  readonly #folder: string

  constructor(config: Config, ring: FlowRing, clock: Clock, log: Log, describe: DescribeFlow) {
    const { keepMs, maxOctets, outputs } = config.flows
    const folder = join(config.state.directory, FLOW_FOLDER)
    this.#folder = folder
    const made = outputs.map((name): FlowOutput => {
      switch (name) {
        case 'file':
          return new FlowFiles({ folder, clock, log, keepMs, maxOctets })
        case 'stdout':
          return new StreamOutput(process.stdout, clock, log)
        case 'syslog':
          return new SyslogOutput(log)
      }
    })
    this.files = made.find((output) => output instanceof FlowFiles)
    this.keeper = new FlowKeeper({ ring, clock, outputs: made, node: hostname(), describe })
  }

  /** Yields the lines of all flows that are kept on disk. Writes the latest flows first, so that they are included. */
  async *read(): AsyncIterable<string> {
    await this.keeper.flush()
    await this.files?.settled()
    yield* readFlowFolder(this.#folder)
  }

  get remembered(): number {
    return this.keeper.tally.size
  }

  get lost(): number {
    return this.keeper.lost
  }

  get failed(): number {
    return this.files?.counters.failed ?? 0
  }

  lines(): Iterable<readonly [string, number]> {
    return this.keeper.taken
  }

  refused(): Iterable<readonly [string, number]> {
    return this.keeper.refused
  }
}
