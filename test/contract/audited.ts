// Contract: the verdict for every combination of the three answers to a packet (identity, class, any). A packet that audited rules deny
// passes only if another entry allows it. The rule that denies it then reports it. Otherwise the audited deny counts for nothing. A weak
// deny yields to every other answer.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { PolicyEntry, PolicyVerdict } from '../../src/datapath/entries.ts'
import { frame, SYN, tcp } from '../support/packets.ts'
import {
  commit,
  LEARNED,
  PEER_4,
  PEER_6,
  POD,
  POD_4,
  POD_6,
  policy,
  settle,
  WORLD_4,
  WORLD_6,
  type Bench,
  type BenchMaker,
} from './bench.ts'
import { withBench } from './commits.ts'
import { eventsOf } from './verdicts.ts'

const ANSWERS = ['none', 'allow', 'deny', 'audit', 'audit-deny', 'audit-pass', 'weak-deny'] as const
type Answer = (typeof ANSWERS)[number]
const TRIPLES = ANSWERS.flatMap((a) => ANSWERS.flatMap((b) => ANSWERS.map((c) => [a, b, c])))
type Outcome = 'pass' | 'audit' | 'drop'

const ROUTES = [
  { source: POD_4, target: PEER_4, world: WORLD_4 },
  { source: POD_6, target: PEER_6, world: WORLD_6 },
] as const
const to443 = tcp({ from: 40000, to: 443 }, SYN)

/** The three answers' rules are 11, 12 and 13. */
function entriesOf(answers: readonly Answer[], world: number): readonly PolicyEntry[] {
  return answers.flatMap((verdict, i) =>
    verdict === 'none'
      ? []
      : [policy({ identity: [LEARNED, world, 0][i] ?? 0, verdict, rule: 11 + i })],
  )
}

/** The verdict by the sentences of the header. */
function expected(answers: readonly Answer[]): Outcome {
  const has = (...some: readonly Answer[]): boolean => some.some((each) => answers.includes(each))
  if (has('deny')) return 'drop'
  if (!has('allow', 'audit', 'audit-pass')) return 'drop'
  return has('allow') && !has('audit-deny', 'audit-pass') ? 'pass' : 'audit'
}

/** The rules that a report can name: those of the answers that decided. */
function rulesOf(answers: readonly Answer[], outcome: Outcome): readonly number[] {
  if (outcome === 'pass') return []
  if (outcome === 'drop' && !answers.includes('deny') && answers.includes('audit-deny')) return [0]
  const byStrength: readonly (readonly PolicyVerdict[])[] =
    outcome === 'drop' ? [['deny'], ['weak-deny']] : [['audit-deny', 'audit-pass'], ['audit']]
  for (const some of byStrength) {
    const rules = answers.flatMap((each, i) => (some.some((one) => one === each) ? [11 + i] : []))
    if (rules.length > 0) return rules
  }
  return [0]
}

/** `rule` is undefined without a report. A datapath leaves out reports when there are many. */
function judge(
  bench: Bench,
  { source, target }: (typeof ROUTES)[number],
): { readonly outcome: Outcome; readonly rule: number | undefined } {
  const audited = (): number => bench.datapath.reports.counters()['verdict_audit'] ?? NaN
  const before = audited()
  const verdict = bench.judge(POD, 'from', frame({ source, target }, to443))
  const [event] = eventsOf(bench)
  return {
    outcome: verdict === 'drop' ? 'drop' : audited() === before ? 'pass' : 'audit',
    rule: event?.rule,
  }
}

export function contractOfAuditedRules(maker: BenchMaker): void {
  const skip = maker.unavailable ?? false
  describe(`${maker.name}: audited rules`, { skip }, () => {
    for (const route of ROUTES) {
      test(`judge combines three answers to one verdict, to ${route.target}`, () => {
        withBench(maker, {}, (bench) => {
          settle(bench, [])
          let named = 0
          for (const answers of TRIPLES) {
            const entries = entriesOf(answers, route.world)
            assert.deepEqual(commit(bench.datapath, { policyUpserts: entries }), [])
            const { outcome, rule } = judge(bench, route)
            const want = expected(answers)
            assert.equal(outcome, want, answers.join(', '))
            if (rule !== undefined) {
              named++
              assert.ok(rulesOf(answers, want).includes(rule), `${answers.join(', ')}: ${rule}`)
            }
            commit(bench.datapath, { policyRemovals: entries })
          }
          assert.ok(named > 20, `only ${named} packets were reported`)
        })
      })
    }

    test('dump returns every verdict that an entry can have', () => {
      withBench(maker, {}, (bench) => {
        const verdicts = ANSWERS.filter((each) => each !== 'none')
        const entries = verdicts.map((verdict, i) =>
          policy({ protocol: 6, port: 100 + i, verdict }),
        )
        settle(bench, entries)
        const dumped = bench.datapath.dump().policies.map(({ port, verdict }) => [port, verdict])
        assert.deepEqual(
          dumped.toSorted(([a], [b]) => Number(a) - Number(b)),
          entries.map(({ port, verdict }) => [port, verdict]),
        )
      })
    })

    test('judge names no rule for a packet that only an audited rule denies and no entry allows', () => {
      withBench(maker, {}, (bench) => {
        settle(bench, [policy({ identity: LEARNED, verdict: 'audit-deny', rule: 11 })])
        bench.datapath.mode.set('audit')
        assert.deepEqual(judge(bench, ROUTES[0]), { outcome: 'audit', rule: 0 })
      })
    })
  })
}
