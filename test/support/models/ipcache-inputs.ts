// The inputs of a random IPCache. There are few of each kind, so that they meet often.

export const ENDPOINTS = [1, 2, 3]
export const NAMES = ['a.x', 'b.x', 'c.y', 'a.b.x', 'd.y']
export const PATTERNS = ['a.x', '*.x', '**.x', '*.y', '*', 'b*.x']
export const ADDRESSES = [
  ...[1, 2, 3, 6, 9].map((n) => `10.0.0.${n}/32`),
  ...['10.1.0.1/32', '192.0.2.1/32', '192.0.2.2/32'],
  ...[1, 2, 9].map((n) => `fd00::${n}/128`),
]
export const PREFIXES = [
  ...['0.0.0.0/0', '10.0.0.0/8', '10.0.0.0/16', '10.0.0.0/29', '10.1.0.0/16', '192.0.2.0/24'],
  ...['::/0', 'fd00::/8', 'fd00::/125'],
]
export const CIDR_SELECTORS = [
  '0.0.0.0/0',
  '10.0.0.0/8',
  '10.0.0.0/8 except 10.0.0.0/16',
  '10.0.0.0/29',
  'fd00::/8',
]
export const VALUES = [['k8s:app=a', 'k8s:app=b'], ['k8s:zone=1'], ['external:x', 'external:x=2']]
/** Kinds of facts that configuration makes. A kind that is listed three times is three times as likely. */
export const FACT_KINDS = ['node', 'endpoint', 'resource', 'policy', 'policy', 'policy'] as const
