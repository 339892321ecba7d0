// What people write after --allow that is no name: an address, a prefix or a URL, and what to write in its place. Many of
// them could be read as a pattern that no name ever matches, or fail at a character that explains nothing.

import { parseAddress } from '../core/ip.ts'

const BY_POLICY =
  'expected a name: toCIDR in a file for --policy allows addresses (docs/policies.md)'

/** Ports that URLs leave out, as options take them. */
const PORTS: ReadonlyMap<string, string> = new Map([
  ['http:', ':80/tcp'],
  ['https:', ':443/tcp'],
])

/** Why it is none, as the end of a fault; undefined when it may be a pattern. */
export function whyNotAName(text: string): string | undefined {
  const [, scheme] = /^([a-z][a-z0-9+.-]*:)\/\//i.exec(text) ?? []
  if (scheme !== undefined) return `: found a URL, expected a name${nameInUrl(text, scheme)}`
  const [host = '', ...rest] = splitHost(text)
  if (parseAddress(host) === undefined) return undefined
  const isPrefix = /^\/\d/.test(rest.join(''))
  return `: found ${isPrefix ? 'a prefix' : 'an address'}, ${BY_POLICY}`
}

/** Host, and what stands behind it. */
function splitHost(text: string): readonly string[] {
  const [, bracketed, behind = ''] = /^\[([^\]]*)\](.*)$/s.exec(text) ?? []
  if (bracketed !== undefined) return [bracketed, behind]
  const isIpv6 = (text.match(/:/g) ?? []).length > 1
  const end = text.search(isIpv6 ? /\// : /[:/]/)
  return end < 0 ? [text] : [text.slice(0, end), text.slice(end)]
}

function nameInUrl(text: string, scheme: string): string {
  const url = URL.parse(text)
  if (url === null || url.hostname === '') return ''
  const port = url.port === '' ? (PORTS.get(scheme.toLowerCase()) ?? '') : `:${url.port}/tcp`
  return `: write --allow ${url.hostname}${port}`
}
