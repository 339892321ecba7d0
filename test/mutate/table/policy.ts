// Policy: which endpoints it selects, which names it permits, and which entries its rules make.

import { inFile, type Mutation } from '../mutation.ts'

const PATTERN = [
  'test/policy/match/pattern.test.ts',
  'test/policy/match/pattern-index.test.ts',
  'test/property/pattern-index.test.ts',
]
const LABELS = ['test/policy/match/labels.test.ts', 'test/policy/match/policy-matcher.test.ts']
const FLAT = [
  'test/policy/compile/flatten.test.ts',
  'test/policy/compile/compile.test.ts',
  'test/policy/audited.test.ts',
]
const DNS_RULES = [
  'test/policy/compile/dns-rules.test.ts',
  'test/policy/compile/server-rules.test.ts',
  'test/policy/audited.test.ts',
]
const TIERS = ['test/policy/compile/tiers.test.ts']
const VERDICT = ['test/contract/memory.test.ts']

export const POLICY: readonly Mutation[] = [
  ...inFile('src/policy/match/pattern.ts', PATTERN, [
    [
      "if (pattern.kind === 'below' || deep ? extra < 1 : extra !== 0) return false",
      "if (pattern.kind === 'below' || deep ? extra < 0 : extra !== 0) return false",
    ],
    ["if (pattern.kind === 'below' || deep ?", "if (pattern.kind === 'below' || !deep ?"],
    [
      'if (!starts.every((start) => isPlainLabel(wire, start))) return false',
      'if (!starts.some((start) => isPlainLabel(wire, start))) return false',
    ],
    ['return g === glob.length', 'return g <= glob.length'],
  ]),
  ...inFile(
    'src/policy/match/globs.ts',
    ['test/policy/match/globs.test.ts'],
    [
      ['return g === globEnd', 'return g <= globEnd'],
      ['      l = ++resume', '      l = resume += 2'],
    ],
  ),
  ...inFile('src/policy/match/labels.ts', LABELS, [
    [
      'if (!valuesOf(key, labels).includes(wanted)) return false',
      'if (valuesOf(key, labels).length === 0) return false',
    ],
    [
      'return !found.some((value) => expression.values.includes(value))',
      'return found.some((value) => !expression.values.includes(value))',
    ],
    ['return found.length === 0', 'return found.length <= 1'],
    [
      'if (policy.namespace !== undefined && policy.namespace !== namespaceOf(labels)) return false',
      'if (policy.namespace === namespaceOf(labels)) return true',
    ],
  ]),
  ...inFile('src/policy/match/policy-matcher.ts', LABELS.toReversed(), [
    [
      'if (changed.hasSelecting(group)) group.selecting = undefined',
      'if (!changed.hasSelecting(group)) group.selecting = undefined',
    ],
    ['if (place < last) this.#groups.clear()', 'if (place < 0) this.#groups.clear()'],
  ]),
  ...inFile('src/policy/compile/dns-rules.ts', DNS_RULES, [
    ["if (!hasDns && withoutRules === 'allow') return", "if (withoutRules === 'allow') return"],
    [
      "if (rule.action !== 'allow' || !mayBeServer(rule.peers)) return false",
      'if (!mayBeServer(rule.peers)) return false',
    ],
    [
      'if (restricting.some(({ rules }) => rules.some((rule) => deniesAsking(rule, protocol))))',
      'if (restricting.every(({ rules }) => rules.some((rule) => deniesAsking(rule, protocol))))',
    ],
    [
      "peer.kind === 'entity' ? peer.entity !== 'none' : peer.kind !== 'fqdn'",
      "peer.kind === 'entity' ? peer.entity !== 'none' : true",
    ],
    ['range.protocol === ANY_PROTOCOL || range.protocol === protocol', 'range.protocol >= 0'],
    ['ports.some((range) => coversDns(range, protocol)) ? dns : []', 'ports.length > 0 ? dns : []'],
  ]),
  ...inFile(
    'src/policy/load/selector.ts',
    ['test/policy/corpus.test.ts'],
    [
      ["  ['reserved', 'toEntities'],", "  ['cidrgroup', 'toEntities'],"],
      [
        'return expected === undefined && field === undefined',
        'return expected === undefined',
        'a fault was reported, so the document is refused with any reading of the rest',
      ],
    ],
  ),
  ...inFile('src/policy/compile/flatten.ts', FLAT, [
    [
      'if (range.high < LAST_PORT) cuts.add(range.high + 1)',
      'if (range.high < LAST_PORT - 1) cuts.add(range.high + 1)',
    ],
    [
      'coverages.filter(({ range }) => range.low <= low && range.high >= high)',
      'coverages.filter(({ range }) => range.low <= high && range.high >= low)',
      'segments are cut wherever a coverage begins or ends, so one that touches a segment covers all of it',
    ],
    [
      "[] = ['deny', 'audit-deny', 'allow', 'audit']",
      "[] = ['deny', 'allow', 'audit-deny', 'audit']",
    ],
    [
      'if (port % size !== 0 || port + size - 1 > high) break',
      'if (port % size !== 0 || port + size - 1 > high + 1) break',
    ],
    [
      'for (const segment of segmentsOf([...everyProtocol, ...mine], decide)) {',
      'for (const segment of segmentsOf(mine, decide)) {',
    ],
  ]),
  ...inFile('src/policy/compile/tiers.ts', TIERS, [
    ['if (admin !== undefined) return admin', 'if (admin?.action === undefined) return admin'],
    [
      "if (found !== undefined && found.action !== 'audit-deny') return found",
      'if (found !== undefined) return found',
    ],
    ['Math.min(...ofTier.map(', 'Math.max(...ofTier.map('],
    ['Math.min(turn.rule, ', 'Math.max(turn.rule, '],
    ["return first.some(({ action }) => action === 'pass')", 'return first.length > 9'],
    ["if (selected.some(({ action }) => action === 'pass')) return true", ''],
    ['if (isDeny) return allowing.some(', 'if (isDeny) return denying.some('],
    ["return { ...entry, action: 'weak-deny' }", 'return entry'],
  ]),
  ...inFile('src/datapath/verdict.ts', VERDICT, [
    ["const STRENGTH = ['deny', 'audit-pass',", "const STRENGTH = ['audit-pass', 'deny',"],
    ['return protocol === 0 ? 0 : 1 + portBits', 'return protocol === 0 ? 17 : 1 + portBits'],
    ['if (port === undefined) return entry.portBits === 0', 'if (port === undefined) return true'],
    [
      'return (entry.port ^ port) >> (16 - entry.portBits) === 0',
      'return (entry.port ^ port) >> (17 - entry.portBits) === 0',
    ],
  ]),
]
