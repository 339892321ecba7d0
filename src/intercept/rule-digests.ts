// This file makes digests of the installed rules, one digest per part. A part is a table, a chain with its rules, or a set that
// never changes. The kernel keeps the digests beside the rules, as comments in a chain that no packet enters. So any later
// process (the daemon, its successor, `intercept show`) can see which part was changed. A digest is made from what nft(8) lists
// right after the rules were installed, and compared with what nft lists later. Another version of nft can list the same rule in
// other words, so then only the number of rules is compared. Sets of interfaces and of cgroups have no digest, because they
// follow these. The digest of a set whose elements expire does not include the elements.

import { createHash } from 'node:crypto'
import { DIGESTS_CHAIN, TABLE } from './nft-script.ts'
import { fieldOf } from './targets.ts'

/** A part, either as it is now or as its digest recorded it. */
export interface Part {
  /** The number of rules of a chain; 0 for other parts. */
  readonly rules: number
  readonly digest: string
  /** The version of nft(8) that listed the part. */
  readonly version: string
}

/** By kind, family and name: `chain inet queries`, `set inet servers4`, `table bridge`. */
export type Parts = ReadonlyMap<string, Part>

/** Types of the sets that follow interfaces and cgroups. */
export const FOLLOWING: readonly string[] = ['ifname', 'cgroupsv2']
const DIGEST_DIGITS = 16
const DIGEST = /^((?:table|chain|set) \S+(?: \S+)?) (\d+) ([0-9a-f]+) (\S+)$/

/** The parts among the items of `nft -j list table` for namegate's tables. */
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

/** The digests among these items. */
export function digestsOf(items: readonly unknown[]): Parts {
  const digests = new Map<string, Part>()
  for (const item of items) {
    const rule = fieldOf(item, 'rule')
    if (fieldOf(rule, 'chain') !== DIGESTS_CHAIN) continue
    const [, name, rules, digest, version] = DIGEST.exec(String(fieldOf(rule, 'comment'))) ?? []
    if (name === undefined || digest === undefined || version === undefined) continue
    digests.set(name, { rules: Number(rules), digest, version })
  }
  return digests
}

/** The nft script that writes the digests of `parts`. */
export function digestScript(parts: Parts): string {
  const chain = `inet ${TABLE} ${DIGESTS_CHAIN}`
  const rules = [...parts].map(
    ([name, { rules, digest, version }]) =>
      `add rule ${chain} return comment "${name} ${rules} ${digest} ${version}"\n`,
  )
  return `add chain ${chain}\nflush chain ${chain}\n${rules.join('')}`
}

/** The parts that differ from their digests, as text for people. Empty if all parts agree. */
export function damageOf(parts: Parts, digests: Parts): readonly string[] {
  if (digests.size === 0) return [textOf(`chain inet ${DIGESTS_CHAIN}`)]
  const added = [...parts.keys()].filter((name) => !digests.has(name))
  return [
    ...[...digests].flatMap(([name, was]) => differenceOf(name, was, parts)),
    ...added.map((name) => `${textOf(name)} (without digest)`),
  ]
}

function differenceOf(name: string, was: Part, parts: Parts): readonly string[] {
  const part = parts.get(name)
  if (part === undefined) {
    // If a whole table is gone, only the table is reported.
    const table = `table ${name.split(' ')[1]}`
    return name === table || parts.has(table) ? [textOf(name)] : []
  }
  if (part.rules !== was.rules) return [`${textOf(name)} (${part.rules} of ${was.rules} rules)`]
  const isSame = part.digest === was.digest || part.version !== was.version
  return isSame ? [] : [`${textOf(name)} (changed)`]
}

/** For example `nft chain inet namegate_intercept queries`. */
function textOf(part: string): string {
  const [kind, family, ...rest] = part.split(' ')
  return ['nft', kind, family, TABLE, ...rest].join(' ')
}

/** The part to which an item belongs, and the fields to digest, without handles and packet counters. */
function partOf(item: unknown): readonly [name: string, text: string] | undefined {
  const [table, set] = [fieldOf(item, 'table'), fieldOf(item, 'set')]
  const [chain, rule] = [fieldOf(item, 'chain'), fieldOf(item, 'rule')]
  const name = (kind: string, of: unknown, key: string): string =>
    [kind, fieldOf(of, 'family'), fieldOf(of, key)].map(String).join(' ')
  if (table !== undefined) {
    return [`table ${String(fieldOf(table, 'family'))}`, fieldsOf(table, 'flags')]
  }
  if (set !== undefined && !FOLLOWING.includes(String(fieldOf(set, 'type')))) {
    const elements = fieldOf(set, 'timeout') === undefined ? ['elem'] : []
    return [name('set', set, 'name'), fieldsOf(set, 'type', 'flags', ...elements)]
  }
  if (chain !== undefined && fieldOf(chain, 'name') !== DIGESTS_CHAIN) {
    return [name('chain', chain, 'name'), fieldsOf(chain, 'type', 'hook', 'prio', 'policy')]
  }
  if (rule !== undefined && fieldOf(rule, 'chain') !== DIGESTS_CHAIN) {
    return [name('chain', rule, 'chain'), fieldsOf(rule, 'expr', 'comment')]
  }
  return undefined
}

function fieldsOf(of: unknown, ...keys: readonly string[]): string {
  return JSON.stringify(keys.map((key) => fieldOf(of, key)))
}
