// `runExecCommand` runs `namegate exec`. The user's command can reach only allowed names and addresses (cli/exec/run.ts). At the end,
// namegate reports which names the command asked, and which connections were refused.

import { closeSync, openSync, writeFileSync } from 'node:fs'
import { messageOf, UnavailableError } from '../../core/errors.ts'
import { openReport } from '../../sandbox/report-file.ts'
import {
  hasRefusals,
  REPORT_VERSION,
  summaryOf,
  summaryRows,
  summaryTitle,
  type Summary,
} from '../../sandbox/summary.ts'
import { optionsOf, readExecArguments } from '../exec/arguments.ts'
import { EXIT_OK, usageError, type CommandOutput } from '../command.ts'
import { helpOf, type CommandTexts } from '../reference.ts'
import { formatTable } from '../table.ts'

/** Returns the exit code of the command that was run, or the exit code of a failure. `texts`: help and usage of `exec`. */
export async function runExecCommand(
  args: readonly string[],
  texts: CommandTexts,
  output: CommandOutput,
): Promise<number> {
  const given = readExecArguments(args)
  if (typeof given === 'string') return usageError(given, texts, output)
  if (given.flags.has('help')) {
    output.stdout(helpOf(texts))
    return EXIT_OK
  }
  const options = optionsOf(given, output)
  if (typeof options === 'number') return options
  const [suggest] = given.texts.get('suggest') ?? []
  // The command may run for hours. So if the file of the suggestion cannot be written, the user learns it before the command starts.
  if (suggest !== undefined) writeSuggestion(() => closeSync(openSync(suggest, 'a')))
  const [target] = given.texts.get('report') ?? []
  const report = target === undefined ? undefined : openReport(target)
  const { runExec } = await import('../exec/run.ts')
  const { code, recorder } = await runExec(options)
  if (recorder === undefined) return code
  if (suggest !== undefined) {
    // Loaded only here, because the list of public suffixes takes a while to load.
    const { suggestPolicy } = await import('../../sandbox/suggest.ts')
    writeSuggestion(() => writeFileSync(suggest, suggestPolicy(recorder)))
  }
  const summary = summaryOf(recorder)
  const whole = { version: REPORT_VERSION, code, audit: options.audit, ...summary }
  report?.write(whole)
  if (given.flags.has('json')) output.stderr(`${JSON.stringify(whole)}\n`)
  else if (!given.flags.has('quiet') && hasRefusals(summary)) {
    output.stderr(formatSummary(summary, options.audit))
  }
  return code
}

function writeSuggestion(write: () => void): void {
  try {
    write()
  } catch (error) {
    const reason = messageOf(error)
    throw new UnavailableError(`Cannot write the suggested policy: ${reason}: see --suggest`)
  }
}

function formatSummary(summary: Summary, isAudited: boolean): string {
  const rows = summaryRows(summary)
  const lost = summary.lost > 0 ? `and ${summary.lost} more\n` : ''
  return `namegate: ${summaryTitle(isAudited)}\n${formatTable(['NAME', 'VERDICT', 'COUNT', 'WOULD ALLOW IT'], rows)}${lost}`
}
