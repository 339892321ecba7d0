// `followList` prints which lines of the allow-list of `namegate up` came into force, and which went out of force. It waits for each new
// revision of the policies that the datapath enforces completely. `ListChanges` makes the lines to print, and has no side effects.

import type { Client } from '../../client/client.ts'
import { readTextFile } from '../../config/files.ts'
import { systemClock } from '../../core/clock.ts'
import { allowLines } from '../../policy/allow-line.ts'
import { cleanCell } from '../table.ts'

/** How long one request waits for the next revision. */
const WAIT_MS = 30_000
const AGAIN_MS = 50

export interface FollowedList {
  /** Absolute path of the list. */
  readonly file: string
  /** The text before the daemon started. */
  readonly text: string
}

/** Gives changes to `print` until `isOver` returns true. */
export async function followList(
  client: Client,
  { file, text }: FollowedList,
  print: (lines: readonly string[]) => void,
  isOver: () => boolean,
): Promise<void> {
  const changes = new ListChanges(text)
  let revision = 0
  while (!isOver()) {
    try {
      const query = { realized: String(revision + 1), timeout: WAIT_MS }
      const { realizedRevision } = (await client.request('GET /v1/status', { query })).value
      if (realizedRevision === revision) continue
      revision = realizedRevision
      const present = await textInForce(client, file)
      if (present === undefined) continue
      const time = new Date(systemClock.wall()).toISOString().slice(11, 19)
      const lines = changes.take(present, time)
      if (lines.length > 0) print(lines)
    } catch {
      // The daemon ends, or the request broke.
      await new Promise<void>((done) => void systemClock.after(AGAIN_MS, done))
    }
  }
}

/** The text of a list. Empty if there is no list. Undefined if the list is not in force as it is, for example because it has a fault. */
async function textInForce(client: Client, file: string): Promise<string | undefined> {
  for await (const row of client.rows('GET /v1/policies')) {
    if (row.file === file) return row.state === 'in-force' ? textIn(file) : undefined
  }
  return ''
}

/** The text of a file. Empty if it cannot be read. */
export function textIn(file: string): string {
  const read = readTextFile(file)
  return read.kind === 'ok' ? read.text : ''
}

export class ListChanges {
  #inForce: readonly string[]

  /** `text`: the list that is in force. */
  constructor(text: string) {
    this.#inForce = targetsIn(text)
  }

  /** Returns what to print when the text of the list came into force at `time`. Empty if its targets are the same. */
  take(text: string, time: string): readonly string[] {
    const before = this.#inForce
    const now = targetsIn(text)
    this.#inForce = now
    return [
      ...said(`${time} now in force`, without(now, before)),
      ...said(`${time} no longer in force`, without(before, now)),
    ]
  }
}

function targetsIn(text: string): readonly string[] {
  return [...new Set(allowLines(text).map((line) => line.text))]
}

function without(targets: readonly string[], others: readonly string[]): readonly string[] {
  const left = new Set(others)
  return targets.filter((target) => !left.has(target))
}

function said(words: string, targets: readonly string[]): readonly string[] {
  return targets.length === 0 ? [] : [cleanCell(`${words}: ${targets.join(', ')}`)]
}
