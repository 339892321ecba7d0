// What each selector selects, compared with a naive reading of docs/spec/semantics 3: only by labels.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { identity, type Identity } from '../../src/core/ids.ts'
import { containsPrefix } from '../../src/core/ip.ts'
import { LabelSets } from '../../src/core/labels.ts'
import {
  SelectorCache,
  type Selector,
  type SelectorSpec,
} from '../../src/identity/selector-cache.ts'
import { indexLabels, selectorMatches } from '../../src/policy/match/labels.ts'
import type { LabelExpression } from '../../src/policy/rule.ts'
import { patternOf, prefixOf } from '../support/nodes/node.ts'
import { runsOf } from '../support/properties.ts'
import { Random } from '../support/models/random.ts'

function fqdn(text: string): SelectorSpec {
  return { kind: 'fqdn', pattern: patternOf(text) }
}

function cidr(text: string, ...except: readonly string[]): SelectorSpec {
  return { kind: 'cidr', prefix: prefixOf(text), except: except.map(prefixOf) }
}

function endpoints(
  matchLabels: readonly (readonly [string, string])[],
  ...matchExpressions: readonly LabelExpression[]
): SelectorSpec {
  const selector = { matchLabels: new Map(matchLabels), matchExpressions }
  return { kind: 'endpoints', selector }
}

const SPECS: readonly SelectorSpec[] = [
  fqdn('*.x'),
  fqdn('a.x'),
  fqdn('**.x'),
  cidr('0.0.0.0/0'),
  cidr('10.0.0.0/8'),
  cidr('10.0.0.0/8', '10.1.0.0/16'),
  cidr('10.1.0.0/16'),
  cidr('fd00::/8', 'fd00::/64'),
  { kind: 'named' },
  endpoints([['a', 'b']]),
  endpoints([['k8s:a', 'b']], { key: 'c', operator: 'DoesNotExist', values: [] }),
  endpoints([], { key: 'c', operator: 'NotIn', values: ['d', 'e'] }),
  endpoints([], { key: 'a', operator: 'In', values: ['b', 'c'] }),
  endpoints([], { key: 'a', operator: 'Exists', values: [] }),
  endpoints([]),
]
const LABELS = [
  ['fqdn:*.x'],
  ['fqdn:*.x', 'fqdn:a.x'],
  ['fqdn:a.x', 'cidr:10.1.0.0/16', 'reserved:world'],
  ['cidr:10.0.0.0/8'],
  ['cidr:10.1.2.0/24'],
  ['cidr:0.0.0.0/0', 'fqdn:**.x'],
  ['cidr:fd00::/64'],
  ['cidr:fd00::/16'],
  ['k8s:a=b'],
  ['external:a=b', 'k8s:c=d'],
  ['external:a=c'],
  ['k8s:c=f', 'fqdn:a.x'],
  ['k8s:a=b', 'reserved:host'],
  ['k8s:a=b', 'reserved:world', 'reserved:world-ipv4'],
  ['reserved:named', 'fqdn:a.x'],
  ['reserved:named'],
]

function selectsNaively(spec: SelectorSpec, labels: readonly string[]): boolean {
  if (spec.kind === 'fqdn') return labels.includes(`fqdn:${spec.pattern.text}`)
  if (spec.kind === 'named') return labels.includes('reserved:named')
  if (spec.kind === 'endpoints') {
    const isKnown = !labels.some((label) => label.startsWith('reserved:'))
    return isKnown && selectorMatches(spec.selector, indexLabels(labels))
  }
  return labels.some((label) => {
    if (!label.startsWith('cidr:')) return false
    const prefix = prefixOf(label.slice(5))
    const isExcept = spec.except.some((each) => containsPrefix(each, prefix))
    return containsPrefix(spec.prefix, prefix) && !isExcept
  })
}

test('SelectorCache selects only by labels, whether the selector or the identity is first', () => {
  const random = new Random(5)
  const sets = new LabelSets()
  const cache = new SelectorCache({ labelSets: sets })
  const selectors = new Map<SelectorSpec, Selector>()
  const identities = new Map<Identity, readonly string[]>()
  for (let step = 0; step < runsOf(4000); step++) {
    if (random.oneIn(2)) {
      const spec = random.pick(SPECS)
      const held = selectors.get(spec)
      if (held === undefined) selectors.set(spec, cache.acquire(spec).selector)
      else if (cache.release(held)) selectors.delete(spec)
    } else {
      const labels = random.pick(LABELS)
      const id = identity(100 + LABELS.indexOf(labels))
      const set = sets.intern(labels)
      if (identities.delete(id)) {
        cache.removeIdentity(id, set)
      } else {
        sets.retain(set)
        const expected = [...selectors].filter(([spec]) => selectsNaively(spec, labels))
        assert.deepEqual(new Set(cache.addIdentity(id, set)), new Set(expected.map(([, s]) => s)))
        identities.set(id, labels)
      }
    }
    for (const [spec, selector] of selectors) {
      const expected = [...identities].filter(([, labels]) => selectsNaively(spec, labels))
      const found = new Set(selector.identities)
      assert.deepEqual(found, new Set(expected.map(([id]) => id)), selector.text)
    }
    for (const [id, labels] of identities) {
      const expected = [...selectors].filter(([spec]) => selectsNaively(spec, labels))
      assert.deepEqual(new Set(cache.selectorsOf(id)), new Set(expected.map(([, s]) => s)))
    }
    assert.equal(cache.size, selectors.size)
  }
})

test('SelectorCache has one selector for equal texts, and counts its users', () => {
  const cache = new SelectorCache({ labelSets: new LabelSets() })
  const first = cache.acquire(fqdn('*.Cilium.io.'))
  const second = cache.acquire(fqdn('*.CILIUM.io'))
  assert.deepEqual([first.added, second.added], [true, false])
  assert.equal(first.selector, second.selector)
  assert.equal(first.selector.text, '*.cilium.io')
  assert.equal(cache.release(first.selector), false)
  assert.equal(cache.find(fqdn('*.cilium.io')), first.selector)
  assert.equal(cache.release(first.selector), true)
  assert.equal(cache.find(fqdn('*.cilium.io')), undefined)
  assert.throws(() => cache.release(first.selector), /is known/)
})

test('SelectorCache accepts exceptions of a CIDR selector in any order', () => {
  const cache = new SelectorCache({ labelSets: new LabelSets() })
  const { selector } = cache.acquire(cidr('10.0.0.0/8', '10.2.0.0/16', '10.1.0.0/16'))
  assert.equal(cache.acquire(cidr('10.0.0.0/8', '10.1.0.0/16', '10.2.0.0/16')).selector, selector)
  assert.notEqual(cache.acquire(cidr('10.0.0.0/8')).selector, selector)
  assert.equal(selector.text, '10.0.0.0/8 except 10.1.0.0/16, 10.2.0.0/16')
})
