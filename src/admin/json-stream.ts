// Writes rows to a response without blocking the event loop. After each slice of work, the rest of the process runs. The writer waits for a
// slow client, and it ends when the client has closed the connection.

import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import type { Clock } from '../core/clock.ts'
import type { Rows } from './views/rows.ts'

/** How long one slice takes, in milliseconds. The clock is read after each row, so a slice can be longer by one row. */
const SLICE_MS = 2
/** How many characters are gathered before they are written. */
const CHUNK = 32_768

export class SliceWriter {
  readonly #response: ServerResponse
  readonly #clock: Clock
  #until: number
  #text = ''

  constructor(response: ServerResponse, clock: Clock) {
    this.#response = response
    this.#clock = clock
    this.#until = clock.now() + SLICE_MS
  }

  /** True while the client can still read. */
  get open(): boolean {
    return !this.#response.destroyed
  }

  add(text: string): void {
    this.#text += text
  }

  /** Lets the rest of the process run if the slice is over. Call it after each piece of work. */
  async breathe(): Promise<void> {
    const late = this.#clock.now() >= this.#until
    if (this.#text.length >= CHUNK || late) await this.flush()
    if (!late) return
    await new Promise<void>((resolve) => this.#clock.soon(resolve))
    this.#until = this.#clock.now() + SLICE_MS
  }

  /** Writes the gathered text and waits until the client takes more. */
  async flush(): Promise<void> {
    const text = this.#text
    this.#text = ''
    if (text === '' || !this.open || this.#response.write(text)) return
    const closed = new AbortController()
    const drained = once(this.#response, 'drain', { signal: closed.signal }).catch(() => undefined)
    const gone = once(this.#response, 'close', { signal: closed.signal }).catch(() => undefined)
    await Promise.race([drained, gone])
    closed.abort()
  }
}

/** Writes one JSON array, with one row on each line. */
export async function writeRows(
  response: ServerResponse,
  clock: Clock,
  rows: Rows<object>,
): Promise<void> {
  const writer = new SliceWriter(response, clock)
  let before = '[\n'
  for (const row of rows) {
    if (!writer.open) return
    if (row !== undefined) {
      writer.add(before + JSON.stringify(row))
      before = ',\n'
    }
    await writer.breathe()
  }
  writer.add(before === '[\n' ? '[]\n' : '\n]\n')
  await writer.flush()
}
