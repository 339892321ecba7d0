// Finds in the output of `nft -j list ruleset` the rules of other programs that change what happens to DNS or to namegate's mark. Rules of
// iptables-nft are in this output too. The functions are pure, and skip what they do not know.

import { TABLE as INTERCEPT_TABLE } from '../../intercept/nft-script.ts'
import { admits, itemsOf, statementOf } from '../../intercept/ruleset.ts'
import { fieldOf } from '../../intercept/targets.ts'
import { listOf } from '../fields.ts'

/** What a rule does: `turns` sends port 53 elsewhere, `drops` drops port 53, `marks` sets or matches the mark. */
export type Effect = 'turns' | 'drops' | 'marks'

export interface ForeignRule {
  readonly effect: Effect
  /** The statement, such as `dnat`. */
  readonly statement: string
  /** Family, table and chain, as arguments of nft. */
  readonly chain: string
  readonly handle: string
}

const TURNS: readonly string[] = ['dnat', 'redirect', 'tproxy']
const DROPS: readonly string[] = ['drop', 'reject']

export interface ForeignRuleset {
  readonly rules: readonly ForeignRule[]
  /** Chains that drop every incoming packet that no rule accepts, as arguments of nft. */
  readonly closed: readonly string[]
}

/** `mark` is the mark of the packets that namegate sends. */
export function foreignRuleset(json: string, mark: number): ForeignRuleset {
  const rules: ForeignRule[] = []
  const closed: string[] = []
  for (const item of itemsOf(json)) {
    const rule = fieldOf(item, 'rule')
    const chain = fieldOf(item, 'chain')
    if (isOwn(rule) || isOwn(chain)) continue
    if (fieldOf(chain, 'hook') === 'input' && fieldOf(chain, 'policy') === 'drop') {
      closed.push(`${placeOf(chain)} ${String(fieldOf(chain, 'name'))}`)
    }
    const found = effectOf(listOf(fieldOf(rule, 'expr')), mark)
    if (found === undefined) continue
    const where = `${placeOf(rule)} ${String(fieldOf(rule, 'chain'))}`
    rules.push({ ...found, chain: where, handle: String(fieldOf(rule, 'handle')) })
  }
  return { rules, closed }
}

/** Tables of namegate, and those that `namegate exec` makes. */
function isOwn(of: unknown): boolean {
  const table = fieldOf(of, 'table')
  return typeof table === 'string' && (table === INTERCEPT_TABLE || table.startsWith('namegate'))
}

function placeOf(of: unknown): string {
  return `${String(fieldOf(of, 'family'))} ${String(fieldOf(of, 'table'))}`
}

function effectOf(
  expressions: readonly unknown[],
  mark: number,
): Pick<ForeignRule, 'effect' | 'statement'> | undefined {
  const statements = expressions.map((each) => statementOf(each).toLowerCase())
  if (expressions.some(namesDns)) {
    const turning = statements.find((each) => TURNS.includes(each))
    if (turning !== undefined) return { effect: 'turns', statement: turning }
    const dropping = statements.find((each) => DROPS.includes(each))
    if (dropping !== undefined) return { effect: 'drops', statement: dropping }
  }
  if (expressions.some((each) => matchesMark(each, mark))) {
    return { effect: 'marks', statement: 'match' }
  }
  return expressions.some((each) => setsMark(each, mark))
    ? { effect: 'marks', statement: 'set' }
    : undefined
}

function namesDns(expression: unknown): boolean {
  const match = fieldOf(expression, 'match')
  const field = fieldOf(fieldOf(fieldOf(match, 'left'), 'payload'), 'field')
  if (field !== 'dport' && field !== 'sport') return false
  return fieldOf(match, 'op') !== '!=' && admits(fieldOf(match, 'right'))
}

function isMark(value: unknown): boolean {
  return fieldOf(fieldOf(value, 'meta'), 'key') === 'mark'
}

/** True for a match that a packet with the mark fulfils because of the mark. */
function matchesMark(expression: unknown, mark: number): boolean {
  const match = fieldOf(expression, 'match')
  if (fieldOf(match, 'op') === '!=') return false
  const [left, right] = [fieldOf(match, 'left'), fieldOf(match, 'right')]
  if (isMark(left)) return right === mark || listOf(fieldOf(right, 'set')).includes(mark)
  const [value, mask] = listOf(fieldOf(left, '&'))
  if (!isMark(value) || typeof mask !== 'number' || right === 0) return false
  return (BigInt(mark) & BigInt(mask)) === (typeof right === 'number' ? BigInt(right) : -1n)
}

function setsMark(expression: unknown, mark: number): boolean {
  const mangle = fieldOf(expression, 'mangle')
  return isMark(fieldOf(mangle, 'key')) && fieldOf(mangle, 'value') === mark
}
