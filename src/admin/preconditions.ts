// Reads the headers If-Match and If-None-Match (RFC 9110, section 13), and compares them with the ETag of an object.

import type { IncomingHttpHeaders } from 'node:http'

type Conditions = Pick<IncomingHttpHeaders, 'if-match' | 'if-none-match'>

/** Returns true if the client of a GET request has this version already, so that the answer is 304. */
export function isKnown(headers: Conditions, tag: string): boolean {
  const header = headers['if-none-match']
  return header !== undefined && names(header, tag)
}

/** Returns why a change must not happen, or undefined if it can. `tag` is undefined if there is no such object. */
export function unmet(headers: Conditions, tag: string | undefined): string | undefined {
  const { 'if-match': only, 'if-none-match': unless } = headers
  const found = tag === undefined ? 'found no such object' : `found the version ${tag}`
  if (only !== undefined && !names(only, tag)) return `if-match: ${found}, expected ${only}`
  if (unless !== undefined && names(unless, tag)) return `if-none-match: ${found}`
  return undefined
}

/** Returns true if a list of ETags has `tag`, or is `*` and the object exists. */
function names(header: string, tag: string | undefined): boolean {
  if (tag === undefined) return false
  const tags = header.split(',').map((each) => each.trim().replace(/^W\//, ''))
  return header.trim() === '*' || tags.includes(tag)
}
