// A trial of a package as steps. Each step returns its finding in one line, or fails and ends the trial. The table of all steps is printed at
// the end, and the exit code says whether every step was good.

import { PackageReport } from './report.ts'

export type Step = (name: string, run: () => Promise<string>) => Promise<void>

class Failed extends Error {}

/** Runs a trial and prints its table. */
export async function withReport(
  system: string,
  trial: (step: Step) => Promise<void>,
): Promise<void> {
  const report = new PackageReport()
  try {
    await trial(async (name, run) => {
      process.stderr.write(`${system}: ${name}\n`)
      try {
        report.add(system, name, { ok: true, text: await run() })
      } catch (error) {
        const text = error instanceof Error ? error.message : String(error)
        process.stderr.write(`${text}\n`)
        report.add(system, name, { ok: false, text: text.split('\n')[0] ?? '' })
        throw new Failed()
      }
    })
  } catch (error) {
    process.exitCode = 1
    if (!(error instanceof Failed))
      process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`)
  }
  process.stdout.write(report.text)
}
