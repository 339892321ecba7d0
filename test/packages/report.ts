// The table at the end of a trial of packages: a row for each step, a column for each system.

export interface StepResult {
  readonly ok: boolean
  readonly text: string
}

export class PackageReport {
  readonly #columns: string[] = []
  readonly #rows = new Map<string, Map<string, StepResult>>()

  /** Adds the result of a step on a system. */
  add(system: string, step: string, result: StepResult): void {
    if (!this.#columns.includes(system)) this.#columns.push(system)
    const row = this.#rows.get(step) ?? new Map<string, StepResult>()
    this.#rows.set(step, row.set(system, result))
  }

  /** True if there are results, and all are good. */
  get isGood(): boolean {
    const all = [...this.#rows.values()].flatMap((row) => [...row.values()])
    return all.length > 0 && all.every(({ ok }) => ok)
  }

  /** The aligned table. With several systems, each has its own lines below the step. */
  get text(): string {
    const lines = [...this.#rows].flatMap(([step, row]) =>
      this.#columns.map((system, i) => {
        const result = row.get(system)
        const word = result === undefined ? '-' : result.ok ? 'ok' : 'FAILED'
        return [i === 0 ? step : '', system, word, result?.text ?? 'not reached']
      }),
    )
    return aligned([['step', 'system', 'result', ''], ...lines])
  }
}

function aligned(lines: readonly (readonly string[])[]): string {
  const widths = (lines[0] ?? []).map((_, i) =>
    Math.max(...lines.map((line) => line[i]?.length ?? 0)),
  )
  const texts = lines.map((line) => line.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join('  '))
  return `${texts.map((line) => line.trimEnd()).join('\n')}\n`
}
