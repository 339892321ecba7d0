// Puts random policies in force over one datapath, one after the other, while names are learned and forgotten, and lets the kernel judge
// packets. Every verdict equals a naive reading of docs/spec/semantics 2 and 3. A packet that is allowed before and after a change passes
// during the whole change. NAMEGATE_SEED=n sets the first seed, NAMEGATE_POLICIES=n the number of policies.

import assert from 'node:assert/strict'
import { formatFault } from '../../../src/core/errors.ts'
import { loadPolicies } from '../../../src/policy/load/load.ts'
import type { Policy } from '../../../src/policy/rule.ts'
import type { Bench } from '../../contract/bench.ts'
import {
  CASE_S,
  formatProbe,
  KernelNode,
  type DefaultEgress,
  type Probe,
} from '../nodes/kernel-node.ts'
import type { NaiveVerdict } from './naive-policy.ts'
import { formatPolicy } from './policy-document.ts'
import { Random } from './random.ts'
import { randomDocument } from './random-document.ts'

export const DEFAULTS = ['deny', 'allow', 'audit'] as const
export const SEED = Number(process.env['NAMEGATE_SEED'] ?? 20_261_121)
/** The number of policies to try: NAMEGATE_POLICIES, or the usual number. */
export function policiesOr(usual: number): number {
  return Number(process.env['NAMEGATE_POLICIES'] ?? usual)
}

/** Policies in force at once. */
const TOGETHER = 4
const PROBES = 20
/** Probes that run between the slices of a change. */
const WATCHED = 4

/** Runs until the number of policies is reached. Returns a summary. Closes the bench. */
export function judgeMany(
  bench: Bench,
  seed: number,
  defaultEgress: DefaultEgress,
  policies: number,
): string {
  const verdicts = { allow: 0, deny: 0, audit: 0 }
  const kinds = { deny: 0, except: 0, ranges: 0, negative: 0 }
  const counts = { policies: 0, probes: 0, ipv6: 0, slices: 0, watched: 0, mostPrefixes: 0 }
  const tally = { ...counts, verdicts, kinds }
  const began = performance.now()
  try {
    const run = new KernelNode(bench, new Random(seed), defaultEgress)
    for (let n = 0; tally.policies < policies; n++) {
      try {
        runCase(run, tally)
      } catch (error) {
        const inForce = run.inForce.map(formatPolicy).join('\n')
        throw new Error(`seed ${seed}, case ${n}, in force:\n${inForce}\n${String(error)}`, {
          cause: error,
        })
      }
    }
  } finally {
    bench.close()
  }
  assert.ok(verdicts.allow + verdicts.audit > tally.probes / 20)
  assert.ok(verdicts.deny > tally.probes / 20)
  const seconds = ((performance.now() - began) / 1000).toFixed(1)
  assert.ok(Object.values(kinds).every((count) => count > tally.policies / 50))
  const tried = `${tally.policies} policies (${kinds.deny} with deny rules, ${kinds.except} with exceptions, ${kinds.ranges} with port ranges, ${kinds.negative} with negative selectors)`
  return `seed ${seed}: ${tried}, ${tally.probes} probes (${tally.ipv6} IPv6; ${verdicts.allow} allow, ${verdicts.deny} deny, ${verdicts.audit} audit), ${tally.watched} looks in ${tally.slices} slices, up to ${tally.mostPrefixes} prefixes, ${seconds} s`
}

/** The policy that the loader makes of the text of a policy. Both must mean the same. */
function loaded(policy: Policy): Policy {
  const document = formatPolicy(policy)
  const { policies, faults } = loadPolicies(document, 'policy.yaml')
  assert.deepEqual(faults.map(formatFault), [], document)
  assert.deepEqual(policies.map(withoutPlaces), [withoutPlaces(policy)], document)
  return policies[0]!
}

function withoutPlaces(policy: Policy): unknown {
  const position = undefined
  return { ...policy, position, rules: policy.rules.map((rule) => ({ ...rule, position })) }
}

interface Tally {
  policies: number
  probes: number
  ipv6: number
  readonly kinds: Record<Kind, number>
  readonly verdicts: Record<NaiveVerdict, number>
  slices: number
  watched: number
  mostPrefixes: number
}

type Kind = 'deny' | 'except' | 'ranges' | 'negative'

function kindsOf({ selector, rules }: Policy): Readonly<Record<Kind, boolean>> {
  const peers = rules.flatMap((rule) => (rule.peers.kind === 'any' ? [] : rule.peers.selectors))
  const ranges = rules.flatMap(({ toPorts }) => toPorts?.flatMap(({ ports }) => ports) ?? [])
  const selectors = peers.flatMap((peer) => (peer.kind === 'endpoints' ? [peer.selector] : []))
  const expressions = [selector, ...selectors].flatMap((each) => each.matchExpressions ?? [])
  return {
    deny: rules.some(({ action }) => action === 'deny'),
    except: peers.some((peer) => peer.kind === 'cidr' && peer.except.length > 0),
    ranges: ranges.some(({ low, high }) => low < high && high - low < 65_535),
    negative: expressions.some(
      ({ operator }) => operator.startsWith('Not') || operator.startsWith('Does'),
    ),
  }
}

/** The next set of policies: mostly one is new, sometimes all are. */
function nextPolicies(run: KernelNode, tally: Tally): readonly Policy[] {
  const { random } = run
  const fresh = (): Policy => {
    const policy = loaded(randomDocument(random, `p${tally.policies++}`))
    const { deny, except, ranges, negative } = kindsOf(policy)
    tally.kinds.deny += Number(deny)
    tally.kinds.except += Number(except)
    tally.kinds.ranges += Number(ranges)
    tally.kinds.negative += Number(negative)
    return policy
  }
  if (random.oneIn(12)) return Array.from({ length: random.below(TOGETHER + 1) }, fresh)
  const replaced = random.below(TOGETHER)
  const kept = run.inForce.filter((_, i) => i !== replaced)
  return [...kept.slice(0, TOGETHER - 1), fresh()]
}

function runCase(run: KernelNode, tally: Tally): void {
  run.pass(CASE_S)
  for (let i = run.random.below(4); i > 0; i--) run.teach()
  const policies = nextPolicies(run, tally)
  const probes = run.probes([...run.inForce, ...policies], PROBES)
  const before = probes.map((probe) => run.naive(probe))
  const after = probes.map((probe) => run.naive(probe, policies))
  const kept = probes.filter((_, i) => before[i] !== 'deny' && after[i] !== 'deny')
  run.change(policies, () => {
    tally.slices++
    for (const probe of kept.slice(0, WATCHED)) {
      tally.watched++
      assert.equal(
        run.kernel(probe),
        'pass',
        `${formatProbe(probe)} is cut in the middle of a change`,
      )
    }
  })
  assert.equal(run.core.committer.refused, 0, 'the kernel took every entry')
  const audited = auditedBy(run.bench)
  assert.deepEqual(differences(run, probes, after), [])
  const audits = after.filter((verdict) => verdict === 'audit').length
  assert.equal(auditedBy(run.bench) - audited, audits, 'packets that passed by audit')
  tally.probes += probes.length
  tally.ipv6 += probes.filter(({ peer }) => peer.family === 6).length
  for (const verdict of after) tally.verdicts[verdict]++
  tally.mostPrefixes = Math.max(tally.mostPrefixes, run.core.ipcache.prefixes.slots.used)
}

/** Number of packets that passed because something is audited. */
function auditedBy({ datapath }: Bench): number {
  return datapath.reports.counters()['verdict_audit'] ?? NaN
}

/** Probes whose verdict in the kernel differs from the expected one. */
export function differences(
  run: KernelNode,
  probes: readonly Probe[],
  verdicts = probes.map((probe) => run.naive(probe)),
): readonly string[] {
  return probes.flatMap((probe, i) => {
    const have = run.kernel(probe)
    const want = verdicts[i]
    const same = have === (want === 'deny' ? 'drop' : 'pass')
    return same ? [] : [`${formatProbe(probe)}: ${have}, not ${want}`]
  })
}
