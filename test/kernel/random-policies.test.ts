// Random policies, written as the objects their authors write, loaded, put in force one after the other over one
// datapath while names come and go, and judged by the kernel's own programs: every verdict is what a naive reading of
// SEMANTICS 2 and 3 says, and what is allowed before and after a change passes all the way through it.
// NAMEGATE_SEED=n begins with that seed.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { formatFault } from '../../src/core/errors.ts'
import { pinDirectory } from '../../src/datapath/ebpf/bpffs.ts'
import { encodePolicyKey, encodePolicyValue, MAP_SHAPES } from '../../src/datapath/ebpf/layout.ts'
import {
  PREFIX_KEY_SIZE,
  PREFIX_VALUE_SIZE,
  type PrefixBatch,
} from '../../src/datapath/prefix-batch.ts'
import type { PolicyEntry } from '../../src/datapath/datapath.ts'
import { loadPolicies } from '../../src/policy/load.ts'
import type { Policy } from '../../src/policy/rule.ts'
import { ebpfMaker, makeEbpfBench, type EbpfBench } from '../contract/ebpf-bench.ts'
import { CASE_S, formatProbe, KernelNode, type Probe } from '../support/kernel-node.ts'
import type { NaiveVerdict } from '../support/naive-policy.ts'
import { mkPolicies } from '../support/node.ts'
import { formatPolicy } from '../support/policy-document.ts'
import { Random } from '../support/random.ts'
import { randomDocument } from '../support/random-document.ts'

const POLICIES = 5000
const DEFAULTS = ['deny', 'allow', 'audit'] as const
const SEED = Number(process.env['NAMEGATE_SEED'] ?? 20_261_121)
/** Policies in force at once. */
const TOGETHER = 4
const PROBES = 20
/** Probes that are tried between the slices of a change. */
const WATCHED = 4

/** What the loader makes of the text of a policy; its meaning must be the one it was written from. */
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

interface Octets {
  readonly key: Uint8Array
  readonly value: Uint8Array
}

function encoded(entry: PolicyEntry): Octets {
  const { key: keySize, value: valueSize } = MAP_SHAPES.ng_policy
  const octets = { key: new Uint8Array(keySize), value: new Uint8Array(valueSize) }
  encodePolicyKey(entry, octets.key, 0)
  encodePolicyValue(entry, octets.value, 0)
  return octets
}

function placeOf(prefixes: PrefixBatch, prefix: string): Octets {
  const at = Array.from({ length: prefixes.count }, (_, i) => prefixes.format(i)).indexOf(prefix)
  assert.ok(at >= 0, `${prefix} is in the kernel's map`)
  return {
    key: prefixes.keys.slice(at * PREFIX_KEY_SIZE, (at + 1) * PREFIX_KEY_SIZE),
    value: prefixes.values.slice(at * PREFIX_VALUE_SIZE, (at + 1) * PREFIX_VALUE_SIZE),
  }
}

/** Sets or, without a value, removes an entry of a pinned map with bpftool, past namegate. */
function writeEntry(bench: EbpfBench, map: string, key: Uint8Array, value?: Uint8Array): void {
  const hex = (octets: Uint8Array): string[] => [
    'hex',
    ...[...octets].map((octet) => octet.toString(16)),
  ]
  const pin = join(pinDirectory(bench.pinPath), map)
  const rest = value === undefined ? [] : ['value', ...hex(value)]
  const verb = value === undefined ? 'delete' : 'update'
  execFileSync('bpftool', ['map', verb, 'pinned', pin, 'key', ...hex(key), ...rest])
}

interface Tally {
  policies: number
  probes: number
  readonly verdicts: Record<NaiveVerdict, number>
  slices: number
  watched: number
  mostPrefixes: number
}

/** The next set of policies: mostly one of them is new, now and then all are. */
function nextPolicies(run: KernelNode, tally: Tally): readonly Policy[] {
  const { random } = run
  const fresh = (): Policy => loaded(randomDocument(random, `p${tally.policies++}`))
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
  for (const verdict of after) tally.verdicts[verdict]++
  tally.mostPrefixes = Math.max(tally.mostPrefixes, run.core.ipcache.prefixes.slots.used)
}

/** Packets that passed because something is audited. */
function auditedBy({ datapath }: EbpfBench): number {
  return datapath.counters()['verdict_audit'] ?? NaN
}

/** Probes of which the kernel thinks otherwise than it should. */
function differences(
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

describe('random policies', { skip: ebpfMaker.unavailable ?? false }, () => {
  for (const [i, defaultEgress] of DEFAULTS.entries()) {
    const share = Math.ceil(POLICIES / DEFAULTS.length)
    test(`are enforced by the kernel as a naive reading says, default-egress ${defaultEgress}`, (t) => {
      const seed = SEED + i
      const bench = makeEbpfBench()
      const verdicts = { allow: 0, deny: 0, audit: 0 }
      const tally: Tally = {
        policies: 0,
        probes: 0,
        verdicts,
        slices: 0,
        watched: 0,
        mostPrefixes: 0,
      }
      const began = performance.now()
      try {
        const run = new KernelNode(bench, new Random(seed), defaultEgress)
        for (let n = 0; tally.policies < share; n++) {
          try {
            runCase(run, tally)
          } catch (error) {
            const policies = run.inForce.map(formatPolicy).join('\n')
            throw new Error(`seed ${seed}, case ${n}, in force:\n${policies}\n${String(error)}`, {
              cause: error,
            })
          }
        }
        const seconds = ((performance.now() - began) / 1000).toFixed(1)
        t.diagnostic(
          `seed ${seed}: ${tally.policies} policies, ${tally.probes} probes (${verdicts.allow} allow, ${verdicts.deny} deny, ${verdicts.audit} audit), ${tally.watched} looks in ${tally.slices} slices, up to ${tally.mostPrefixes} prefixes, ${seconds} s`,
        )
        assert.ok(verdicts.allow + verdicts.audit > tally.probes / 10)
        assert.ok(verdicts.deny > tally.probes / 10)
      } finally {
        bench.close()
      }
    })
  }

  test('are told apart from a map in which one entry was changed or removed behind their back', () => {
    const bench = makeEbpfBench()
    try {
      const run = new KernelNode(bench, new Random(SEED), 'deny')
      const egress =
        "egress: [{ toCIDR: [198.18.0.0/28], toPorts: [{ ports: [{ port: '443', protocol: TCP }] }] }]"
      const policies = mkPolicies(egress)
      run.change(policies, () => undefined)
      const probes = run.probes(policies, 2000)
      assert.deepEqual(differences(run, probes), [])
      const { policies: entries, prefixes } = bench.datapath.dump()
      const entry = entries.find(({ port }) => port === 443)
      assert.ok(entry !== undefined)
      const own = encoded(entry)
      const flipped = encoded({ ...entry, verdict: 'deny' })
      const place = placeOf(prefixes, '198.18.0.0/28')
      for (const { map, right, wrong } of [
        { map: 'ng_policy', right: own, wrong: flipped },
        { map: 'ng_policy', right: own, wrong: undefined },
        { map: 'ng_ipcache', right: place, wrong: undefined },
      ]) {
        writeEntry(bench, map, right.key, wrong?.value)
        const found = differences(run, probes)
        assert.ok(found.length > 0, `${map} is noticed`)
        assert.ok(found.every((line) => line.endsWith('443/6: drop, not allow')))
        writeEntry(bench, map, right.key, right.value)
        assert.deepEqual(differences(run, probes), [])
      }
    } finally {
      bench.close()
    }
  })
})
