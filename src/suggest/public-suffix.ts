// Public suffixes: domains under which anyone may register a name, by the public suffix list as `tldts` has it. Private suffixes such
// as github.io count as well as those of registries, because their names belong to different people too.

import { getPublicSuffix } from 'tldts'

/** Whether names below `domain` (lower case, no final dot) belong to whoever registers them. */
export function isPublicSuffix(domain: string): boolean {
  if (!domain.includes('.')) return true
  return getPublicSuffix(domain, { allowPrivateDomains: true, extractHostname: false }) === domain
}
