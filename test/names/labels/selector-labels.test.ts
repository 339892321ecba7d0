// What selectors in force give to names, and which of them a name that was asked has had.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LabelSets } from '../../../src/core/labels.ts'
import { SelectorCache, type FqdnSelector } from '../../../src/identity/selector-cache.ts'
import { SelectorLabels } from '../../../src/names/labels/selector-labels.ts'
import { wireName } from '../../support/messages.ts'
import { mkPattern } from '../../support/models/pattern-index.ts'

test('SelectorLabels has seen what a name matched since the selector came into force, and nothing from before', () => {
  const labelSets = new LabelSets()
  const cache = new SelectorCache({ labelSets })
  const labels = new SelectorLabels({ labelSets })
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
  assert.deepEqual(seen(), [true, false], 'the same label set as before, and nobody asked since')
  ask()
  assert.deepEqual(seen(), [true, true])
})
