// `readDomainName` reads one item of `domainNames` of a ClusterNetworkPolicy: a name of two DNS labels at least, or such a name after `*.`.
// As its API says, this star matches one or more whole DNS labels, so the item becomes a pattern with `**.` in front.

import type { Reader } from '../../documents/source-document.ts'
import { parseMatchPattern, type Pattern } from '../match/pattern.ts'

/** The form of the API. Its pattern also takes a few signs that no name of policy can have; these are refused. */
export const DOMAIN_NAME =
  /^(?:\*\.)?(?:[a-zA-Z0-9_](?:[a-zA-Z0-9_-]*[a-zA-Z0-9])?\.)+[a-zA-Z0-9_](?:[a-zA-Z0-9_-]*[a-zA-Z0-9])?\.?$/

/** Returns the pattern of an item; undefined after a fault. */
export function readDomainName(reader: Reader): Pattern | undefined {
  const form = 'a name such as www.example.com or *.example.com'
  const text = reader.text(form)
  if (text === undefined) return undefined
  if (!DOMAIN_NAME.test(text)) return reader.expected(form)
  const result = parseMatchPattern(text.startsWith('*.') ? `*${text}` : text)
  return result.kind === 'ok' ? result.pattern : reader.fault(result.reason)
}
