// One index for the DNS patterns of all endpoints, against matching each endpoint's patterns one by one.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DnsVerdicts, type AskingRules } from '../../src/control/dns-verdicts.ts'
import { endpointId } from '../../src/core/ids.ts'
import type { DnsRules } from '../../src/policy/dns-rules.ts'
import { matches } from '../../src/policy/pattern.ts'
import { patternOf, wireOf } from '../support/node.ts'
import { Random } from '../support/random.ts'

const PATTERNS = ['a.x', '*.x', '**.x', '*', 'a*.x', '*.*.x'].map(patternOf)
const NAMES = ['a.x', 'b.x', 'ab.x', 'a.b.x', 'x', 'y'].map(wireOf)

function askingAs(rules: DnsRules): AskingRules {
  return { rules, audited: undefined, deniedBy: 0, auditedBy: 0 }
}

function decide(rules: DnsRules | undefined, wire: Uint8Array): boolean {
  if (rules === undefined || rules.kind === 'no-name') return false
  return rules.kind === 'every-name' || rules.patterns.some((pattern) => matches(pattern, wire))
}

test('DnsVerdicts.mayAsk says what the endpoint’s own patterns say, through random changes', () => {
  const random = new Random(9)
  const verdicts = new DnsVerdicts()
  const model = new Map<number, DnsRules>()
  for (let step = 0; step < 3000; step++) {
    const id = endpointId(1 + random.below(5))
    if (random.oneIn(5)) {
      verdicts.remove(id)
      model.delete(id)
    } else {
      const patterns = Array.from({ length: random.below(4) }, () => random.pick(PATTERNS))
      const rules = random.pick<DnsRules>([
        { kind: 'every-name' },
        { kind: 'no-name' },
        { kind: 'names', patterns },
        { kind: 'names', patterns },
      ])
      verdicts.set(id, askingAs(rules), () => askingAs({ kind: 'no-name' }))
      model.set(id, rules)
    }
    for (let endpoint = 1; endpoint <= 5; endpoint++) {
      for (const wire of NAMES) {
        const padded = Uint8Array.from([3, ...wire])
        assert.equal(
          verdicts.mayAsk(endpointId(endpoint), padded, 1),
          decide(model.get(endpoint), wire),
        )
      }
    }
  }
})
