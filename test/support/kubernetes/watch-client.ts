// Requests and watches of a test, with what came of them.

import assert from 'node:assert/strict'
import type {
  ApiAnswer,
  ApiLoss,
  ApiPort,
  ApiStreamEnd,
} from '../../../src/kubernetes/connection/api-port.ts'
import { isMapping } from '../../../src/documents/source-document.ts'

export function get(api: ApiPort, path: string): Promise<ApiAnswer | ApiLoss> {
  return new Promise((done) => api.get(path, done))
}

export interface Watched {
  readonly events: readonly unknown[]
  readonly isOpen: boolean
  readonly end: ApiAnswer | ApiLoss | ApiStreamEnd | undefined
  cancel(): void
}

export function watch(api: ApiPort, path: string): Watched {
  const events: unknown[] = []
  const seen = { events, isOpen: false, end: undefined, cancel: () => request.cancel() }
  const found: { -readonly [Key in keyof Watched]: Watched[Key] } = seen
  const request = api.watch(path, {
    onOpen() {
      found.isOpen = true
    },
    onEvent(event) {
      events.push(event)
    },
    onEnd(end) {
      found.end = end
    },
  })
  return found
}

/** Waits until something holds, and fails after 20 s. */
export async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  const end = performance.now() + 20_000
  while (!(await holds())) {
    assert.ok(performance.now() < end, `this did not happen in 20 s: ${what}`)
    await new Promise((done) => setTimeout(done, 5))
  }
}

/** `200`, or why there is no answer. */
export function codeOf(end: ApiAnswer | ApiLoss): number | string {
  return end.kind === 'answer' ? end.code : end.reason
}

/** The value at a path of keys; undefined if there is none. */
export function at(value: unknown, ...keys: readonly string[]): unknown {
  return keys.reduce((here, key) => (isMapping(here) ? here[key] : undefined), value)
}

export function bodyOf(end: ApiAnswer | ApiLoss): unknown {
  return end.kind === 'answer' ? end.body : undefined
}

/** `ADDED a` for each event. */
export function describeEvents(events: readonly unknown[]): readonly string[] {
  return events.map((event) => {
    const name = at(event, 'object', 'metadata', 'name')
    const type = at(event, 'type')
    const code = at(event, 'object', 'code')
    return [type, name, code]
      .filter((each) => each !== undefined && each !== '')
      .map(String)
      .join(' ')
  })
}
