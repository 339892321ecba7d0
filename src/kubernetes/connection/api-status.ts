// Reads the Status object, with which the API server refuses a request or ends a watch.

import { isMapping } from '../../documents/source-document.ts'
import type { ApiAnswer, ApiLoss } from './api-port.ts'

export interface ApiStatus {
  readonly code: number
  readonly message: string
  readonly retryAfterMs: number | undefined
}

/** Reads a Status. `code` is used if the body has none, and 0 means that there is no code at all. */
export function readStatus(body: unknown, code = 0): ApiStatus {
  const fields = isMapping(body) ? body : {}
  const details = isMapping(fields['details']) ? fields['details'] : {}
  const seconds = details['retryAfterSeconds']
  return {
    code: typeof fields['code'] === 'number' ? fields['code'] : code,
    message: typeof fields['message'] === 'string' ? oneLine(fields['message']) : '',
    retryAfterMs: typeof seconds === 'number' && seconds > 0 ? seconds * 1000 : undefined,
  }
}

/** The Status of an answer. The header Retry-After is used before the field of the Status. */
export function statusOfAnswer({ code, body, retryAfterMs }: ApiAnswer): ApiStatus {
  const status = readStatus(body, code)
  return { ...status, code, retryAfterMs: retryAfterMs ?? status.retryAfterMs }
}

/** Describes a refusal: `429: Too many requests, please try again later`. */
export function describeStatus({ code, message }: ApiStatus): string {
  return message === ''
    ? `the API server answered ${code}`
    : `the API server answered ${code}: ${message}`
}

/** Describes why a request did not do what it should. */
export function describeEnd(end: ApiAnswer | ApiLoss): string {
  return end.kind === 'answer' ? describeStatus(statusOfAnswer(end)) : end.reason
}

const MESSAGE_MAX = 300

function oneLine(text: string): string {
  const line = text.replace(/\s+/g, ' ').trim()
  return line.length > MESSAGE_MAX ? `${line.slice(0, MESSAGE_MAX)}...` : line
}
