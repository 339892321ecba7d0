// One index for the DNS patterns of all endpoints, compared with a match of each endpoint's patterns.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  DnsVerdicts,
  MAY_ASK,
  NAME_DENIED,
  SERVER_DENIED,
  type AskingRules,
} from '../../src/enforcement/dns-verdicts.ts'
import { endpointId } from '../../src/core/ids.ts'
import { TCP, UDP, type ByDnsProtocol } from '../../src/core/protocol.ts'
import { WORLD_IPV4 } from '../../src/identity/reserved.ts'
import type { DnsRules } from '../../src/policy/compile/dns-rules.ts'
import { NamePatterns } from '../../src/policy/match/name-patterns.ts'
import { matches } from '../../src/policy/match/pattern.ts'
import { patternOf, wireOf } from '../support/nodes/node.ts'
import { runsOf } from '../support/properties.ts'
import { Random } from '../support/models/random.ts'

const PATTERNS = ['a.x', '*.x', '**.x', '*', 'a*.x', '*.*.x'].map(patternOf)
const NAMES = ['a.x', 'b.x', 'ab.x', 'a.b.x', 'x', 'y'].map(wireOf)

function askingAs(rules: DnsRules): AskingRules {
  return { rules, audited: undefined, deniedBy: 0, auditedBy: 0 }
}

function decide(rules: DnsRules | undefined, wire: Uint8Array): boolean {
  if (rules === undefined || rules.kind === 'no-name') return false
  return rules.kind === 'every-name' || rules.patterns.some((pattern) => matches(pattern, wire))
}

function randomRules(random: Random): DnsRules {
  const patterns = Array.from({ length: random.below(4) }, () => random.pick(PATTERNS))
  return random.pick<DnsRules>([
    { kind: 'every-name' },
    { kind: 'no-name' },
    { kind: 'names', patterns },
    { kind: 'names', patterns },
  ])
}

test('DnsVerdicts.judge decides by the endpoint’s own patterns for the protocol, through random changes', () => {
  const random = new Random(9)
  const verdicts = new DnsVerdicts({ patterns: new NamePatterns() })
  const model = new Map<number, ByDnsProtocol<DnsRules>>()
  for (let step = 0; step < runsOf(3000); step++) {
    const id = endpointId(1 + random.below(5))
    if (random.oneIn(5)) {
      verdicts.remove(id)
      model.delete(id)
    } else {
      const udp = randomRules(random)
      const tcp = random.oneIn(2) ? udp : randomRules(random)
      const asking = askingAs(udp)
      // Alike for both protocols is usually one object.
      const asked = {
        [UDP]: asking,
        [TCP]: tcp === udp && random.oneIn(2) ? asking : askingAs(tcp),
      }
      verdicts.set(id, asked, () => askingAs({ kind: 'no-name' }))
      model.set(id, { [UDP]: udp, [TCP]: tcp })
    }
    for (let endpoint = 1; endpoint <= 5; endpoint++) {
      for (const wire of NAMES) {
        const padded = Uint8Array.from([3, ...wire])
        for (const protocol of [UDP, TCP] as const) {
          const judged = verdicts.judge(endpointId(endpoint), protocol, padded, 1)
          assert.equal(judged === MAY_ASK, decide(model.get(endpoint)?.[protocol], wire))
        }
      }
    }
  }
})

test('DnsVerdicts.judgeAt refuses a server that the rules do not admit, and unknown endpoints', () => {
  const verdicts = new DnsVerdicts({ patterns: new NamePatterns() })
  const [asker, wire] = [endpointId(1), wireOf('a.x')]
  const server = (port: number) => {
    return { identity: WORLD_IPV4, addressClass: WORLD_IPV4, port, protocol: UDP } as const
  }
  const everyName = askingAs({ kind: 'every-name' })
  verdicts.set(asker, { [UDP]: everyName, [TCP]: everyName }, ({ port }) => ({
    ...askingAs({ kind: 'no-name' }),
    rules: { kind: port === 53 ? 'every-name' : 'not-admitted' },
  }))
  const at = (port: number) => verdicts.judgeAt(asker, server(port), wire, 0)
  assert.deepEqual([at(53), at(5353), at(53)], [MAY_ASK, SERVER_DENIED, MAY_ASK])
  assert.equal(verdicts.judgeAt(endpointId(2), server(53), wire, 0), SERVER_DENIED, 'a stranger')
  verdicts.remove(asker)
  assert.deepEqual(
    [at(53), verdicts.judge(asker, UDP, wire, 0)],
    [SERVER_DENIED, NAME_DENIED],
    'gone',
  )
})
