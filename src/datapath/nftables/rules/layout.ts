// This file lists the names and shapes of everything in namegate's own table, `inet namegate`. The rules are static, and only
// elements change. LAYOUT numbers the layout. A table with another number is replaced as a whole.
//
// Numbers that only namegate writes (endpoint, scope, identity, class, port set) have type `mark`: 32 bits in the machine's
// order. There are two sides. On side `in`, the endpoint's packets arrive at its interface (the host side of a veth). On side
// `out`, they leave by its interface (an interface inside the workload's own network namespace).

export const TABLE = 'namegate'
export const LAYOUT = 3

export type Side = 'in' | 'out'
export const SIDES: readonly Side[] = ['in', 'out']

/** Data types with nft's number and their size in octets. */
export const FIELD = {
  nfproto: [2, 1],
  integer: [4, 4],
  ip4: [7, 4],
  ip6: [8, 16],
  mac: [9, 6],
  protocol: [12, 1],
  port: [13, 2],
  mark: [19, 4],
  ifindex: [20, 4],
  uid: [23, 4],
  ifname: [41, 16],
} as const

export type Field = keyof typeof FIELD

export interface SetShape {
  readonly name: string
  readonly key: readonly Field[]
  /** Only for maps: the data of an element, or `verdict` if the map leads to a chain. */
  readonly data?: readonly Field[] | 'verdict'
  /** True if keys are ranges. */
  readonly ranges?: boolean
  /** Set if elements can expire. An element that the packet path adds expires after this many milliseconds (0: never). */
  readonly timeoutMs?: number
  /** True if the packet path adds elements. */
  readonly dynamic?: boolean
  /** The data of every key that is not in the map, as words. */
  readonly otherwise?: readonly number[]
  /** True if the key is one number, because it has more fields than nft can name. */
  readonly opaque?: boolean
  /** Most elements that the packet path can add. */
  readonly size?: number
}

const HOUR_MS = 3_600_000
const DYNAMIC_MAX = 65_536
const ADDRESS = { 4: 'ip4', 6: 'ip6' } as const

function perFamily(make: (address: 'ip4' | 'ip6', family: 4 | 6) => SetShape): readonly SetShape[] {
  return [make(ADDRESS[4], 4), make(ADDRESS[6], 6)]
}

function flow(address: 'ip4' | 'ip6'): readonly Field[] {
  return ['mark', 'protocol', address, 'port', address, 'port']
}

/** The sets, in the order in which they are made. */
export const SETS: readonly SetShape[] = [
  { name: 'mode', key: ['mark'] },
  { name: 'written', key: ['mark', 'mark', 'mark', 'mark'] },
  { name: 'hooks_in', key: ['ifindex'], data: ['mark', 'mark'] },
  { name: 'hooks_out', key: ['ifindex'], data: ['mark', 'mark'] },
  { name: 'fences_in', key: ['ifname'], ranges: true },
  { name: 'fences_out', key: ['ifname'], ranges: true },
  { name: 'endpoints', key: ['mark'], data: ['mark', 'mark', 'mark', 'mark'] },
  { name: 'audited', key: ['mark'] },
  { name: 'unenforced', key: ['mark'] },
  { name: 'scoped', key: ['mark'] },
  ...perFamily((ip, n) => ({ name: `sources${n}`, key: ['mark', ip], ranges: true })),
  ...perFamily((ip, n) => ({ name: `own${n}`, key: ['mark', 'uid', 'protocol', ip, 'port'] })),
  ...perFamily((ip, n) => ({ name: `listeners${n}`, key: ['protocol', ip, 'port'] })),
  { name: 'listeners_any', key: ['nfproto', 'protocol', 'port'] },
  { name: 'intercepted', key: ['ifindex', 'nfproto', 'protocol'] },
  { name: 'intercepted_mac', key: ['ifindex', 'nfproto', 'protocol', 'mac'] },
  { name: 'quiet', key: ['ifindex', 'nfproto'], timeoutMs: 0 },
  {
    name: 'neighbours',
    key: ['mark', 'ip6'],
    timeoutMs: HOUR_MS,
    dynamic: true,
    size: DYNAMIC_MAX,
  },
  ...perFamily((ip, n) => ({
    name: `exact${n}`,
    key: ['mark', ip],
    data: ['mark', 'mark', 'mark', 'mark'],
  })),
  ...perFamily((ip, n) => ({
    name: `ranges${n}`,
    key: ['mark', ip],
    data: ['mark', 'mark', 'mark', 'mark'],
    ranges: true,
  })),
  ...perFamily((ip, n) => ({
    name: `prefixes${n}`,
    key: ['mark', 'mark', ip],
    data: ['mark', 'mark'],
  })),
  { name: 'policies', key: ['mark', 'mark'], data: ['mark', 'mark'], otherwise: [0, 0] },
  {
    name: 'ports',
    key: ['mark', 'protocol', 'port'],
    data: ['mark', 'mark'],
    ranges: true,
    otherwise: [0, 0],
  },
  { name: 'entries', key: ['mark', 'protocol', 'mark', 'port'], data: ['mark', 'mark'] },
  ...perFamily((ip, n) => ({ name: `adopted${n}`, key: flow(ip), opaque: true, timeoutMs: 0 })),
  ...perFamily((ip, n) => ({
    name: `learned${n}`,
    key: flow(ip),
    opaque: true,
    timeoutMs: HOUR_MS,
    dynamic: true,
    size: DYNAMIC_MAX,
  })),
  { name: 'learning', key: ['mark'], timeoutMs: 0 },
  { name: 'passing', key: ['mark'], timeoutMs: 0 },
  ...SIDES.flatMap((side) =>
    perFamily((_, n) => ({
      name: `verdicts_${side}${n}`,
      key: ['mark', 'mark', 'mark'],
      data: 'verdict',
    })),
  ),
]

const BY_NAME = new Map(SETS.map((shape) => [shape.name, shape]))

export function shapeOf(name: string): SetShape {
  const shape = BY_NAME.get(name)
  if (shape === undefined) throw new Error(`Cannot use set ${name}: it is not in the layout`)
  return shape
}

/** Octets of fields that follow each other, each padded to 4 octets, as registers are. */
export function widthOf(fields: readonly Field[]): number {
  if (fields.length === 1) return fields.reduce((sum, field) => sum + FIELD[field][1], 0)
  return fields.reduce((sum, field) => sum + ((FIELD[field][1] + 3) & ~3), 0)
}

export const COUNTERS = [
  'verdict_allow',
  'verdict_reply',
  'verdict_listener',
  'verdict_neighbour',
  'verdict_audit',
  'verdict_not_enforcing',
  'verdict_bypass',
  'verdict_intercepted',
  'verdict_adopted',
  'verdict_own',
  'drop_policy',
  'drop_source',
  'drop_malformed',
  'drop_no_endpoint',
] as const

/** Verdicts in `ports`. The index is the number. */
export const VERDICTS = [
  'none',
  'audit',
  'allow',
  'deny',
  'audit-deny',
  'audit-pass',
  'weak-deny',
] as const
export const VERDICT_NUMBER = {
  audit: 1,
  allow: 2,
  deny: 3,
  'audit-deny': 4,
  'audit-pass': 5,
  'weak-deny': 6,
} as const
/** Numbers of modes in the set `mode`. */
export const MODE_NUMBER = { audit: 1, bypass: 2 } as const

/** The nflog group that receives drops and audits. */
export const LOG_GROUP = 0x4e47
/** How many octets of a packet a report has: enough for IPv6 with extension headers and ports. */
export const LOG_OCTETS = 160
export const LOG_DENY = 'namegate deny '
export const LOG_AUDIT = 'namegate audit '

/** The bit of the kernel's connection labels that marks a connection which the peer began. */
export const LABEL_BIT = 111

/** Sets whose elements a start keeps as they are. */
export const KEPT: readonly string[] = [
  'written',
  'mode',
  'hooks_in',
  'hooks_out',
  'fences_in',
  'fences_out',
  'endpoints',
  'audited',
  'unenforced',
  'scoped',
  'sources4',
  'sources6',
  'own4',
  'own6',
  'listeners4',
  'listeners6',
  'listeners_any',
  'intercepted',
  'intercepted_mac',
  'policies',
  'ports',
  'entries',
  'ranges4',
  'ranges6',
  'prefixes4',
  'prefixes6',
].map((name) => shapeOf(name).name)

/** Sets whose elements expire. */
export const TIMED: readonly string[] = [
  'quiet',
  'neighbours',
  'adopted4',
  'adopted6',
  'learned4',
  'learned6',
  'learning',
  'passing',
].map((name) => shapeOf(name).name)
