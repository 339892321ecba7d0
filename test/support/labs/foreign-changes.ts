// The changes that a foreign program can make to the table `inet namegate`, as text for nft: add to, remove from and change every set and
// map, chains, rules and the table itself. Also reads the table as text, without the parts that change by themselves.

import type { Host } from './lab.ts'

export interface ForeignChange {
  readonly title: string
  /** Makes the text from the present table. */
  readonly script: (table: ForeignTable) => Promise<string>
  /** The name in the log. */
  readonly named: string
  /** Object as nft lists it, e.g. `set sources4`. Undefined: everything except elements. */
  readonly object?: string
  /** For a map that is too long to be listed: the key that is changed. */
  readonly key?: (table: ForeignTable) => Promise<string>
}

const TABLE = 'inet namegate'
/** By set: a missing element, and the data to which an element is changed. */
const ADDED: Readonly<Record<string, string>> = {
  written: '0x7 . 0x8 . 0x9 . 0x0',
  hooks_in: '"lo" : 0x0 . 0x7',
  hooks_out: '"lo" : 0x0 . 0x7',
  fences_in: '"foreign*"',
  fences_out: '"foreign*"',
  endpoints: '0x77 : 0x1 . 0x0 . 0x5 . 0x0',
  audited: '0x77',
  unenforced: '0x77',
  scoped: '0x77',
  sources4: '0x77 . 10.99.0.0/16',
  sources6: '0x77 . fd99::/64',
  own4: '0x1 . 0 . udp . 203.0.113.1 . 53',
  own6: '0x1 . 0 . udp . 2001:db8:113::1 . 53',
  listeners4: 'udp . 203.0.113.1 . 53',
  listeners6: 'udp . 2001:db8:113::1 . 53',
  listeners_any: 'ipv4 . udp . 53',
  intercepted: '"lo" . ipv4 . udp',
  intercepted_mac: '"lo" . ipv4 . udp . 02:00:00:00:00:01',
  quiet: '"lo" . ipv4',
  neighbours: '0x77 . fe80::77',
  exact6: '0x0 . 2001:db8:113::1 : 0x0 . 0x1000000 . 0x0 . 0x9',
  ranges4: '0x0 . 203.0.113.0/24 : 0x0 . 0x1000000 . 0x0 . 0x9',
  ranges6: '0x0 . 2001:db8:113::/48 : 0x0 . 0x1000000 . 0x0 . 0x9',
  prefixes4: '0x0 . 0x18 . 203.0.113.0 : 0x1000000 . 0x9',
  prefixes6: '0x0 . 0x30 . 2001:db8:113:: : 0x1000000 . 0x9',
  policies: '0x0 . 0x77 : 0x0 . 0x1',
  ports: '0x77 . tcp . 80-90 : 0x0 . 0x2',
  entries: '0x77 . tcp . 0x10 . 80 : 0x2 . 0x1',
  adopted4: '0x77000000060000000a14010200020000 timeout 9h',
  adopted6: '0x77000000060000000a14010200020001 timeout 9h',
  learned4: '0x77000000060000000a14010200020002 timeout 9h',
  learned6: '0x77000000060000000a14010200020003 timeout 9h',
  learning: '0x77 timeout 9h',
  passing: '0x77 timeout 9h',
  verdicts_in4: '0x77 . 0x77 . 0x77 : accept',
  verdicts_in6: '0x77 . 0x77 . 0x77 : accept',
  verdicts_out4: '0x77 . 0x77 . 0x77 : accept',
  verdicts_out6: '0x77 . 0x77 . 0x77 : accept',
}
/** Sets that have elements in the lab. Maps also have other data for their elements. */
const HELD: Readonly<Record<string, string | undefined>> = {
  written: undefined,
  hooks_in: '0x0 . 0x66',
  fences_in: undefined,
  endpoints: '0x1 . 0x0 . 0x5 . 0x0',
  sources4: undefined,
  sources6: undefined,
  listeners4: undefined,
  listeners6: undefined,
  ranges4: '0x0 . 0x2 . 0x0 . 0x2',
  ranges6: '0x0 . 0x2 . 0x0 . 0x2',
  prefixes4: '0x2 . 0x2',
  prefixes6: '0x2 . 0x2',
  policies: '0x0 . 0x0',
  ports: '0x0 . 0x2',
  entries: '0x2 . 0x66',
  verdicts_in4: 'accept',
  verdicts_out6: 'accept',
  passing: 'timeout 9h',
}
const RANGES = /[-/]/
const MAPS = /^(hooks|endpoints|exact|ranges|prefixes|policies|ports|entries|verdicts)/
/** A learned address, and one that policy forbids. */
const FORBIDDEN = '0x0 . 203.0.113.9'
const OPEN = '0x0 . 0x1000000 . 0x0 . 0x9'

const STRUCTURE: readonly (readonly [title: string, script: string])[] = [
  ['a rule added', `insert rule ${TABLE} in_from accept`],
  ['a rule removed', `flush chain ${TABLE} in_ported4`],
  ['a rule changed', `flush chain ${TABLE} in_refuse; add rule ${TABLE} in_refuse accept`],
  ['a chain added', `add chain ${TABLE} stranger { type filter hook forward priority -299; }`],
  ['a set added', `add set ${TABLE} stranger { type ipv4_addr; }`],
  ['a counter added', `add counter ${TABLE} stranger`],
  ['the table dormant', `add table ${TABLE} { flags dormant; }`],
  ['the table removed', `delete table ${TABLE}`],
  ['the table made again', `delete table ${TABLE}; add table ${TABLE}`],
]

export class ForeignTable {
  readonly #host: Host
  readonly #learned: readonly string[]

  /** `learned`: learned addresses, a different one for each change. */
  constructor(host: Host, learned: readonly string[]) {
    this.#host = host
    this.#learned = learned
  }

  async nft(...args: readonly string[]): Promise<string> {
    const { code, stdout, stderr } = await this.#host.run('nft', args, { limitMs: 60_000 })
    if (code !== 0) throw new Error(`nft ${args.join(' ')}: ${stderr}`)
    return stdout
  }

  /** What nft prints; empty if the table, set or element is missing. nft ends with EINTR when the daemon changes the table meanwhile. */
  async #read(...args: readonly string[]): Promise<string> {
    for (;;) {
      const { code, stdout, stderr } = await this.#host.run('nft', args, { limitMs: 60_000 })
      if (code === 0) return stdout
      if (stderr.includes('No such file or directory')) return ''
      if (!stderr.includes('Interrupted system call'))
        throw new Error(`nft ${args.join(' ')}: ${stderr}`)
    }
  }

  /** Key of a learned address. */
  learned(i: number): string {
    return `0x0 . ${this.#learned[i % this.#learned.length] ?? ''}`
  }

  /** The text of an element; empty if it is missing. */
  async get(name: string, key: string): Promise<string> {
    const args = ['get', 'element', ...TABLE.split(' '), name, `{ ${key} }`]
    return /elements = \{ (.*?) \}/s.exec(await this.#read(...args))?.[1] ?? ''
  }

  /** The elements of a set in order, one per line, without the parts that change by themselves. */
  async elements(name: string): Promise<readonly string[]> {
    const kind = MAPS.test(name) ? 'map' : 'set'
    const text = await this.#read('list', kind, ...TABLE.split(' '), name)
    const list = /elements = \{ (.*?) \}/s.exec(text)?.[1] ?? ''
    return list
      .split(/,\s+/)
      .filter((each) => each !== '')
      .map((each) => each.replace(/ (?:timeout \S+ )?expires (\S+)/, forLong))
      .toSorted()
  }

  /** Tables, sets, chains and rules, without elements and counts. */
  async structure(): Promise<string> {
    const text = await this.#read('-t', 'list', 'table', ...TABLE.split(' '))
    return text.replaceAll(/packets \d+ bytes \d+/g, '')
  }
}

/** Replaces times that run down. A time of many hours gets another word. */
function forLong(_: string, left: string): string {
  return /[hd]/.test(left) ? ' for long' : ''
}

function* elementChanges(): Iterable<ForeignChange> {
  for (const [name, element] of Object.entries(ADDED)) {
    const object = { named: name.startsWith('verdicts') ? 'rules' : name, object: name }
    const script = `add element ${TABLE} ${name} { ${element} }`
    yield { title: `${name}: an element added`, script: async () => script, ...object }
  }
  for (const [name, other] of Object.entries(HELD)) {
    const object = { named: name.startsWith('verdicts') ? 'rules' : name, object: name }
    const first = async (table: ForeignTable): Promise<string> => {
      const all = await table.elements(name)
      const keys = all.filter((each) => !each.startsWith('*')).map((each) => each.split(' : ')[0])
      // nft cannot name a range that is a single address.
      const key = keys.find((each) => RANGES.test(each ?? '')) ?? keys[0]
      if (key === undefined) throw new Error(`the lab has no element in ${name}`)
      return key
    }
    yield {
      title: `${name}: an element removed`,
      script: async (table) =>
        name.startsWith('sources')
          ? `flush set ${TABLE} ${name}`
          : `delete element ${TABLE} ${name} { ${await first(table)} }`,
      ...object,
    }
    if (other === undefined) continue
    yield {
      title: `${name}: an element changed`,
      script: async (table) => {
        const key = await first(table)
        const changed = `${key}${MAPS.test(name) ? ' :' : ''} ${other}`
        return `delete element ${TABLE} ${name} { ${key} }; add element ${TABLE} ${name} { ${changed} }`
      },
      ...object,
    }
  }
  for (const name of ['policies', 'ports']) {
    const script = `delete element ${TABLE} ${name} { * }`
    const rest = { named: 'rules', object: name }
    yield { title: `${name}: its closing rule removed`, script: async () => script, ...rest }
  }
}

function* exactChanges(): Iterable<ForeignChange> {
  const set = `${TABLE} exact4`
  const named = 'exact4'
  const add = `add element ${set} { ${FORBIDDEN} : ${OPEN} }`
  const key = async (): Promise<string> => FORBIDDEN
  yield { title: 'exact4: a forbidden address added', script: async () => add, named, key }
  yield {
    title: 'exact4: a learned address removed',
    script: async (table) => `delete element ${set} { ${table.learned(1)} }`,
    named,
    key: async (table) => table.learned(1),
  }
  yield {
    title: 'exact4: a learned address changed',
    script: async (table) =>
      `delete element ${set} { ${table.learned(2)} }; add element ${set} { ${table.learned(2)} : 0x0 . 0x2 . 0x0 . 0x2 }`,
    named,
    key: async (table) => table.learned(2),
  }
  yield {
    title: 'exact4: all removed',
    script: async () => `flush map ${set}`,
    named,
    key: async (table) => table.learned(3),
  }
}

/** Every change, in an order in which each finds its target. */
export function foreignChanges(): readonly ForeignChange[] {
  return [
    ...exactChanges(),
    ...elementChanges(),
    ...STRUCTURE.map(([title, script]) => ({ title, script: async () => script, named: 'rules' })),
  ]
}
