// Counts the messages that were sent and their results, and makes the text at the end of the run.

export class Tally {
  /** Mutated packets, whose number the caller sets. */
  readonly packets = {
    /** Answers to a live query, one field of a well-formed one changed. */
    field: 0,
    /** Answers to a live query, changed at random places. */
    spoiled: 0,
    /** Messages to the sockets of the server side: late answers, repeated ones, answers to no query, from other ports, and random octets. */
    stray: 0,
    /** Queries that clients spoiled. */
    query: 0,
  }
  /** Packets that were not mutated. */
  readonly plain = { queries: 0, answers: 0 }
  /** How many of the mutated answers to live queries passed each check. */
  readonly passed = { header: 0, question: 0, taught: 0 }
  readonly overTcp = { queries: 0, answers: 0 }
  addresses = 0
  guarded = 0
  repeats = 0
  hangUps = 0
  readonly #outcomes = new Map<string, number>()

  get total(): number {
    const { field, spoiled, stray, query } = this.packets
    return field + spoiled + stray + query
  }

  get answers(): number {
    return this.packets.field + this.packets.spoiled
  }

  /** Counts one query with this outcome. */
  count(outcome: string): void {
    this.#outcomes.set(outcome, (this.#outcomes.get(outcome) ?? 0) + 1)
  }

  outcomesOf(outcome: string): number {
    return this.#outcomes.get(outcome) ?? 0
  }

  report(): readonly string[] {
    const { packets, plain, passed, overTcp } = this
    const share = (name: string, count: number, least: number): string =>
      `  ${name.padEnd(44)}${number(count)}  ${percent(count, this.answers)} of answers, ` +
      `${percent(count, this.total)} of all (at least ${least}%)`
    return [
      line('mutated packets', this.total),
      line('  answers to live queries, one field changed', packets.field),
      line('  answers to live queries, spoiled', packets.spoiled),
      line('  strays to the sockets towards the server', packets.stray),
      line('  queries of clients', packets.query),
      line('not mutated: queries', plain.queries),
      line('not mutated: answers', plain.answers),
      line('over TCP: queries of clients', overTcp.queries),
      line('over TCP: answers', overTcp.answers),
      line('asked again over TCP after a mismatch', this.repeats),
      line('connections ended in the middle of an answer', this.hangUps),
      'of the mutated answers passed',
      share('the header', passed.header, 30),
      share('the question', passed.question, 10),
      share('taught', passed.taught, 1),
      line('addresses taught, all equal to the oracle’s', this.addresses),
      line('answers with a guarded address, never taught', this.guarded),
      'outcomes of queries',
      ...[...this.#outcomes]
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .map(([outcome, count]) => line(`  ${outcome}`, count)),
    ]
  }

  /** Shares that are too small for a proof. */
  get shortfalls(): readonly string[] {
    const { header, question, taught } = this.passed
    const rows = [
      ['the header', header, 30],
      ['the question', question, 10],
      ['taught', taught, 1],
    ] as const
    return rows
      .filter(([, count, least]) => count * 100 < this.total * least)
      .map(([name, count, least]) => `${count} passed ${name}, less than ${least}% of all`)
  }
}

function line(name: string, count: number): string {
  return `${name.padEnd(46)}${number(count)}`
}

function number(count: number): string {
  return String(count)
    .replace(/\B(?=(\d{3})+$)/g, ',')
    .padStart(9)
}

function percent(part: number, whole: number): string {
  return `${((100 * part) / Math.max(1, whole)).toFixed(1)}%`.padStart(6)
}
