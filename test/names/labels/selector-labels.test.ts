// The labels that selectors in force give to names, and those that an asked name has had.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LabelSets } from '../../../src/core/labels.ts'
import { SelectorCache, type FqdnSelector } from '../../../src/identity/selector-cache.ts'
import { MANY_LABELS, SelectorLabels } from '../../../src/names/labels/selector-labels.ts'
import { NameKey } from '../../../src/names/tables/name-table.ts'
import { NamePatterns } from '../../../src/policy/match/name-patterns.ts'
import { matches, type Pattern } from '../../../src/policy/match/pattern.ts'
import { wireName } from '../../support/messages.ts'
import { mkPattern } from '../../support/models/pattern-index.ts'
import { Random } from '../../support/models/random.ts'
import { runsOf } from '../../support/properties.ts'

test('SelectorLabels has seen what a name matched since the selector came into force, and nothing before', () => {
  const labelSets = new LabelSets()
  const cache = new SelectorCache({ labelSets })
  const labels = new SelectorLabels({ labelSets, patterns: new NamePatterns() })
  const enter = (text: string): FqdnSelector => {
    const { selector } = cache.acquire({ kind: 'fqdn', pattern: mkPattern(text) })
    assert.ok(selector.kind === 'fqdn')
    labels.ensure(selector)
    return selector
  }
  const ask = (): void => labels.noteSeen(labels.labelsOf(wireName('a.x'), 0))
  const [wide, exact] = [enter('*.x'), enter('a.x')]
  const seen = (): readonly boolean[] => [wide, exact].map((each) => labels.hasSeen(each))
  assert.deepEqual(seen(), [false, false])
  ask()
  assert.deepEqual(seen(), [true, true])
  labels.drop(exact)
  assert.deepEqual(seen(), [true, false])
  labels.ensure(exact)
  assert.deepEqual(seen(), [true, false], 'the same label set as before, and no question since')
  ask()
  assert.deepEqual(seen(), [true, true])
})

const PATTERNS = ['a.x', '*.x', '**.x', 'a*.x', 'b.x', '*.y'].map(mkPattern)
const NAMES = ['a.x', 'b.x', 'ab.x', 'a.b.x', 'a.y', 'z'].map(wireName)

test('SelectorLabels.labelsOfKey returns the labels of the selectors in force, however old the labels of the name are', () => {
  const random = new Random(38)
  const labelSets = new LabelSets()
  const cache = new SelectorCache({ labelSets })
  const patterns = new NamePatterns()
  const labels = new SelectorLabels({ labelSets, patterns })
  const inForce = new Set<FqdnSelector>()
  const permitted = new Set<Pattern>()
  const asked: NameKey[] = []
  for (let step = 0; step < runsOf(3000); step++) {
    const pattern = random.pick(PATTERNS)
    const { selector } = cache.acquire({ kind: 'fqdn', pattern })
    assert.ok(selector.kind === 'fqdn')
    if (random.oneIn(8)) {
      if (inForce.delete(selector)) labels.drop(selector)
      else {
        inForce.add(selector)
        labels.ensure(selector)
      }
      labelSets.collect()
    }
    // Patterns of DNS rules are the same, and change no labels.
    if (random.oneIn(8)) {
      if (permitted.delete(pattern)) patterns.release(pattern)
      else {
        permitted.add(pattern)
        patterns.hold(pattern)
      }
    }
    const key = new NameKey().set(random.pick(NAMES), 0, 0)
    patterns.match(key.wire, 0)
    key.labels = labels.matchedSet()
    key.labelEpoch = key.labels === MANY_LABELS ? 0 : labels.epoch
    asked.push(key)
    const learned = random.oneIn(2) ? key : random.pick(asked)
    assert.deepEqual(
      labelSets.format(labels.labelsOfKey(learned)),
      [...inForce]
        .filter((each) => matches(each.pattern, learned.wire))
        .map(({ label }) => label)
        .sort(),
    )
  }
})
