// Tells the demo on a terminal: numbered headings, commands with what they printed, aligned tables, and checks. A check
// that fails makes the demo fail, so the story cannot say what is not so. Colours only where a person reads.

export class Story {
  readonly #write: (text: string) => void
  readonly #colours: boolean
  #step = 0
  #failures = 0

  constructor(write: (text: string) => void, colours: boolean) {
    this.#write = write
    this.#colours = colours
  }

  get failures(): number {
    return this.#failures
  }

  title(text: string): void {
    this.#line(this.#paint('1', text))
  }

  heading(text: string): void {
    this.#step++
    this.#line('')
    this.#line(this.#paint('1;36', `${this.#step}. ${text}`))
  }

  say(text: string): void {
    this.#line(`   ${text}`)
  }

  /** A command as one would type it, and what it printed. */
  command(prompt: string, output: string): void {
    this.#line(this.#paint('33', `   ${prompt}`))
    for (const line of output.trim().split('\n')) if (line !== '') this.#line(`     ${line}`)
  }

  table(heads: readonly string[], rows: readonly (readonly string[])[]): void {
    const widths = heads.map((head, column) =>
      Math.max(head.length, ...rows.map((row) => (row[column] ?? '').length)),
    )
    const format = (cells: readonly string[]) =>
      cells
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('   ')
        .trimEnd()
    this.#line(this.#paint('2', `     ${format(heads)}`))
    for (const row of rows) this.#line(`     ${format(row)}`)
  }

  /** What the step was to show; `seen` is printed when it did not. */
  check(holds: boolean, text: string, seen = ''): void {
    if (!holds) this.#failures++
    const mark = holds ? this.#paint('32', 'yes') : this.#paint('31', 'NO ')
    this.#line(`   ${mark} ${text}`)
    if (!holds && seen.trim() !== '') this.#line(seen.trim().replace(/^/gm, '       | '))
  }

  end(text: string): void {
    this.#line('')
    this.#line(this.#paint('1', text))
  }

  #line(text: string): void {
    this.#write(`${text}\n`)
  }

  #paint(code: string, text: string): string {
    return this.#colours ? `\x1b[${code}m${text}\x1b[0m` : text
  }
}
