// What the rules were when they were put in, part by part: a table, a chain with its rules, a set that never changes. Kept in the
// kernel beside the rules, as comments in a chain of its own that no packet comes to, so that any process that looks later (the
// daemon, its successor, `intercept show`) sees which part somebody changed. Made from what nft(8) lists right after
// the rules were put in, and compared with what it lists then: no second notion of how a rule is written. Another version of
// nft may list the same rule in other words, so then the number of rules alone counts.
//
// Sets of interfaces are left out: they follow what there is.

import { createHash } from 'node:crypto'
import { SEALS_CHAIN, TABLE } from './nft-script.ts'
import { fieldOf } from './targets.ts'

/** A part as it stands, or as a seal says it was. */
export interface Part {
  /** Of a chain; 0 otherwise. */
  readonly rules: number
  readonly digest: string
  /** Of nft(8), which says what was digested. */
  readonly version: string
}

/** By kind, family and name: `chain inet queries`, `set inet servers4`, `table bridge`. */
export type Parts = ReadonlyMap<string, Part>

const DIGEST_DIGITS = 16
const SEAL = /^((?:table|chain|set) \S+(?: \S+)?) (\d+) ([0-9a-f]+) (\S+)$/

/** Of the items that `nft -j list table` gives of our tables. */
export function partsOf(items: readonly unknown[]): Parts {
  const texts = new Map<string, string[]>()
  const rules = new Map<string, number>()
  let version = 'unknown'
  for (const item of items) {
    const found = fieldOf(fieldOf(item, 'metainfo'), 'version')
    if (typeof found === 'string') version = found.replaceAll(/\s/g, '-')
    const part = partOf(item)
    if (part === undefined) continue
    const [name, text] = part
    texts.set(name, [...(texts.get(name) ?? []), text])
    if (fieldOf(item, 'rule') !== undefined) rules.set(name, (rules.get(name) ?? 0) + 1)
  }
  return new Map(
    [...texts].map(([name, list]) => {
      const hash = createHash('sha256').update(list.join('\n')).digest('hex')
      return [name, { rules: rules.get(name) ?? 0, digest: hash.slice(0, DIGEST_DIGITS), version }]
    }),
  )
}

/** What the seals among these items say. */
export function sealsOf(items: readonly unknown[]): Parts {
  const seals = new Map<string, Part>()
  for (const item of items) {
    const rule = fieldOf(item, 'rule')
    if (fieldOf(rule, 'chain') !== SEALS_CHAIN) continue
    const [, name, rules, digest, version] = SEAL.exec(String(fieldOf(rule, 'comment'))) ?? []
    if (name === undefined || digest === undefined || version === undefined) continue
    seals.set(name, { rules: Number(rules), digest, version })
  }
  return seals
}

/** The script that seals what stands. */
export function sealScript(parts: Parts): string {
  const chain = `inet ${TABLE} ${SEALS_CHAIN}`
  const rules = [...parts].map(
    ([name, { rules, digest, version }]) =>
      `add rule ${chain} return comment "${name} ${rules} ${digest} ${version}"\n`,
  )
  return `add chain ${chain}\nflush chain ${chain}\n${rules.join('')}`
}

/** What is not as it was sealed, for people; empty when all is. */
export function damageOf(parts: Parts, seals: Parts): readonly string[] {
  if (seals.size === 0) return [textOf(`chain inet ${SEALS_CHAIN}`)]
  const added = [...parts.keys()].filter((name) => !seals.has(name))
  return [
    ...[...seals].flatMap(([name, seal]) => differenceOf(name, seal, parts)),
    ...added.map((name) => `${textOf(name)} (not sealed)`),
  ]
}

function differenceOf(name: string, seal: Part, parts: Parts): readonly string[] {
  const part = parts.get(name)
  if (part === undefined) {
    // With a table everything in it is gone: said once.
    const table = `table ${name.split(' ')[1]}`
    return name === table || parts.has(table) ? [textOf(name)] : []
  }
  if (part.rules !== seal.rules) return [`${textOf(name)} (${part.rules} of ${seal.rules} rules)`]
  const isSame = part.digest === seal.digest || part.version !== seal.version
  return isSame ? [] : [`${textOf(name)} (changed)`]
}

/** `nft chain inet namegate_intercept queries` */
function textOf(part: string): string {
  const [kind, family, ...rest] = part.split(' ')
  return ['nft', kind, family, TABLE, ...rest].join(' ')
}

/** What an item belongs to, and what of it counts: no handles, no packets. */
function partOf(item: unknown): readonly [name: string, text: string] | undefined {
  const [table, set] = [fieldOf(item, 'table'), fieldOf(item, 'set')]
  const [chain, rule] = [fieldOf(item, 'chain'), fieldOf(item, 'rule')]
  const name = (kind: string, of: unknown, key: string): string =>
    [kind, fieldOf(of, 'family'), fieldOf(of, key)].map(String).join(' ')
  if (table !== undefined) {
    return [`table ${String(fieldOf(table, 'family'))}`, fieldsOf(table, 'flags')]
  }
  if (set !== undefined && fieldOf(set, 'type') !== 'ifname') {
    return [name('set', set, 'name'), fieldsOf(set, 'type', 'flags', 'elem')]
  }
  if (chain !== undefined && fieldOf(chain, 'name') !== SEALS_CHAIN) {
    return [name('chain', chain, 'name'), fieldsOf(chain, 'type', 'hook', 'prio', 'policy')]
  }
  if (rule !== undefined && fieldOf(rule, 'chain') !== SEALS_CHAIN) {
    return [name('chain', rule, 'chain'), fieldsOf(rule, 'expr', 'comment')]
  }
  return undefined
}

function fieldsOf(of: unknown, ...keys: readonly string[]): string {
  return JSON.stringify(keys.map((key) => fieldOf(of, key)))
}
