// Policy files read, and the texts that were in force kept: of a file that is broken at the start, what was in force last
// stands in.

import type { Config } from '../config/config.ts'
import { formatFault } from '../core/errors.ts'
import type { Policy } from '../policy/rule.ts'
import type { Log } from '../telemetry/log.ts'
import { GoodTexts, type TextKeeper } from './good-texts.ts'
import { parsePolicyFile, readingOf } from './policy-files.ts'
import type { Parsed } from './source-files.ts'

export interface PolicyReaderOptions {
  readonly config: Config
  readonly log: Log
  /** Absent: texts are not kept. */
  readonly fileKeeper?: TextKeeper | undefined
}

export class PolicyReader {
  readonly texts: GoodTexts | undefined
  readonly #to: PolicyReaderOptions

  constructor(options: PolicyReaderOptions) {
    this.#to = options
    this.texts = options.fileKeeper && new GoodTexts(options.fileKeeper)
  }

  parse(text: string, file: string): Parsed<Policy> {
    const { config, log } = this.#to
    const parsed = parsePolicyFile(text, file, readingOf(config.policies), (warning) => {
      log.warn({ fault: formatFault(warning) }, 'left out of a policy, which allows less')
    })
    if (parsed.faults.length === 0) this.texts?.read(file, text)
    return parsed
  }

  /** What was in force of a file before the start; undefined when nothing is kept of it. */
  standIn(path: string): readonly Policy[] | undefined {
    const text = this.texts?.kept.get(path)
    if (text === undefined) return undefined
    const { items, faults } = this.parse(text, path)
    return faults.length === 0 ? items : undefined
  }
}
