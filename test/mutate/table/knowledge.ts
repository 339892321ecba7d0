// The knowledge about addresses: the guard, expiry, numbers at the bound, and what a restart restores.

import { inFile, type Mutation } from '../mutation.ts'

const EXPIRY = ['test/names/expiry/expiry.test.ts', 'test/scenarios/scenarios.test.ts']
const WHEEL = ['test/names/expiry/expiry-wheel.test.ts']
const IDENTITY = [
  'test/identity/allocator.test.ts',
  'test/identity/numbers.test.ts',
  'test/property/identity-budget.test.ts',
]
const RESTART = [
  'test/restore/restart.test.ts',
  'test/restore/restart-known.test.ts',
  'test/restore/restart-bounds.test.ts',
]
const EVICTION = ['test/names/eviction/eviction.test.ts', 'test/property/name-bounds.test.ts']

export const KNOWLEDGE: readonly Mutation[] = [
  ...inFile(
    'src/names/guard.ts',
    ['test/names/guard.test.ts', 'test/enforcement/allow-guarded.test.ts'],
    [
      [
        "const LINK_LOCAL = ['169.254.0.0/16', 'fe80::/10']",
        "const LINK_LOCAL = ['169.254.0.0/17', 'fe80::/10']",
      ],
      ["  '::1/128',", "  '::2/128',", '::1 contains 0.0.0.1, which is also guarded'],
      ["  '224.0.0.0/4',", "  '224.0.0.0/5',"],
      ["  '255.255.255.255/32',", "  '255.255.255.254/32',"],
      [
        '  { head: [0x20, 0x02], at: [2, 3, 4, 5] },',
        '  { head: [0x20, 0x02], at: [3, 4, 5, 6] },',
      ],
      [
        '  { head: LOCAL_NAT64, at: [7, 9, 10, 11], possible: true },',
        '  { head: LOCAL_NAT64, at: [6, 9, 10, 11], possible: true },',
      ],
      [
        '  { head: TEREDO, at: [12, 13, 14, 15], turned: true },',
        '  { head: TEREDO, at: [12, 13, 14, 15] },',
      ],
      ['  { head: TEREDO, at: [4, 5, 6, 7] },', '  { head: TEREDO, at: [5, 6, 7, 8] },'],
      ['0xff, 0xff, 0, 0], at: [12, 13, 14, 15] },', '0xff, 0xff, 0, 1], at: [12, 13, 14, 15] },'],
      [
        'if (possible === true && this.#embedded[0] === 0) continue',
        'if (possible === true && this.#embedded[0] !== 0) continue',
      ],
      [
        'this.#never.has(family, octets, offset) || this.#embeds(family, octets, offset)',
        'this.#never.has(family, octets, offset)',
      ],
      ['const last = octets[0]! | (0xff >> Math.min(length, 8))', 'const last = octets[0]!'],
    ],
  ),
  ...inFile(
    'src/names/labels/selector-labels.ts',
    ['test/names/labels/selector-labels.test.ts'],
    [
      ['return key.labelEpoch === this.#epoch ?', 'return key.labelEpoch !== 0 ?'],
      ['if (set !== EMPTY_SET) return MANY_LABELS', 'if (set !== EMPTY_SET) return set'],
    ],
  ),
  ...inFile(
    'src/policy/match/name-patterns.ts',
    ['test/names/labels/selector-labels.test.ts', 'test/enforcement/dns-verdicts.test.ts'],
    [['if (--held.holders > 0) return', 'if (--held.holders > 1) return']],
  ),
  ...inFile('src/names/expiry/expiry.ts', EXPIRY, [
    [
      '    } else if (entries.connected[entry] !== 0) {',
      '    } else if (entries.connected[entry] !== 2) {',
    ],
    ['    } else if (this.#looks.isBlind) {', '    } else if (!this.#looks.isBlind) {'],
    [
      'if (entries.mapping[entry] === 0 || wheel.has(entry)) return',
      'if (entries.mapping[entry] === 0) return',
      'an entry that waits in the wheel was revived and keeps its place, or its connection ended and it is removed one pass earlier',
    ],
    [
      'wheel.place(entry, Math.max(due, this.#names.tick()))',
      'wheel.place(entry, due + LOOK_SECONDS * 1000)',
    ],
  ]),
  ...inFile('src/names/expiry/expiry-wheel.ts', WHEEL, [
    [
      'const tick = Math.min(Math.max(due, this.#tick), this.#tick + BUCKETS - 1)',
      'const tick = Math.max(due, this.#tick)',
    ],
    ['    while (this.#tick <= now) {', '    while (this.#tick < now) {'],
    ['    this.#bucket[row] = 0', '    this.#bucket[row] = bucket'],
  ]),
  ...inFile('src/identity/allocator.ts', IDENTITY, [
    [
      'if (known !== undefined && known.references > 0) return true',
      'if (known !== undefined) return true',
    ],
    [
      '      if (entry.freedAt > due && this.#cooling.size <= COOLING_MAX) break',
      '      if (this.#cooling.size <= COOLING_MAX) break',
    ],
    [
      '      if (!this.#unused.has(entry.identity)) this.#forget(entry)',
      '      this.#forget(entry)',
    ],
    [
      'return { identity: this.#refer(this.#fallback(set)), degraded: true }',
      'return { identity: this.#refer(this.#fallback(set)), degraded: false }',
    ],
    [
      "wanted.labels.filter((label) => label.kind !== 'fqdn')",
      "wanted.labels.filter((label) => label.kind === 'fqdn')",
    ],
  ]),
  ...inFile('src/identity/dynamic-budget.ts', IDENTITY, [
    ['return this.#used < this.#max &&', 'return this.#used <= this.#max &&'],
    [
      'this.usedBy(endpoint) < this.#perEndpointMax',
      'this.usedBy(endpoint) <= this.#perEndpointMax',
    ],
  ]),
  ...inFile('src/identity/numbers.ts', IDENTITY.toReversed().slice(1), [
    [
      'if (isUsed(candidate) || this.#carried.has(candidate)) continue',
      'if (isUsed(candidate)) continue',
    ],
    ['if (!this.#withheld.has(candidate)) return candidate', 'return candidate'],
    ['this.#next = highest >= LAST_LOCAL ? FIRST_LOCAL : highest + 1', 'this.#next = FIRST_LOCAL'],
  ]),
  ...inFile('src/names/eviction/eviction.ts', EVICTION, [
    [
      "uses.entries[use]! < bounds['addresses-per-name']",
      "uses.entries[use]! <= bounds['addresses-per-name']",
    ],
    [
      "countOfPrefix[prefix]! >= bounds['names-per-address']",
      "countOfPrefix[prefix]! > bounds['names-per-address']",
    ],
    [
      "if (orders.count(endpoint) >= bounds['pairs-per-endpoint']) {",
      "if (orders.count(endpoint) > bounds['pairs-per-endpoint']) {",
    ],
    ['    if (entry === 0) return false\n', '    if (entry === 0) return true\n'],
  ]),
  ...inFile(
    'src/restore/restored-labels.ts',
    ['test/restore/restart-labels.test.ts', 'test/restore/restart-known.test.ts'],
    [
      [
        'labelSets.intern(row.labels.filter((label) => this.#isGiven(label)))',
        'labelSets.intern(row.labels)',
      ],
      ['if (fact !== 0) ipcache.removeFact(fact)\n    } else', '} else'],
      ['      ipcache.changeFact(fact, set)', '      ipcache.changeFact(fact, EMPTY_SET)'],
    ],
  ),
  ...inFile(
    'src/datapath/committer.ts',
    ['test/datapath/committer.test.ts'],
    [
      [
        'if (prefixes.addressClass[row] !== prefixes.appliedClass[row]) return false',
        'if (prefixes.addressClass[row] === 0) return false',
      ],
    ],
  ),
  ...inFile('src/restore/pending-entries.ts', RESTART, [['    expiry.lookOnce()\n', '']]),
  ...inFile('src/names/expiry/connection-looks.ts', RESTART, [
    ['else this.#passNow(endpoint, row)', 'else this.#begun.push(endpoint, row)'],
  ]),
  ...inFile(
    'src/intercept/plan.ts',
    ['test/intercept/plan.test.ts'],
    [['      ofEndpoints ||\n', '']],
  ),
  ...inFile('src/restore/restart.ts', RESTART, [
    [
      'if (!isWorld || batch.length(entry) !== widthOf(batch.family(entry))) return false',
      'if (!isWorld) return false',
    ],
    [
      'if (scope !== NODE_SCOPE && !endpoints.has(endpointId(scope))) return false',
      'if (scope !== NODE_SCOPE && endpoints.has(endpointId(scope))) return false',
    ],
    [
      "labels.filter((label) => label.startsWith('fqdn:') || label === NAMED_LABEL)",
      "labels.filter((label) => label !== '')",
      'a later step leaves out labels without a selector in force, and labels of prefixes are always inherited',
    ],
    ["    if (this.#phase === 'grace') this.#phase = 'leaving'", "    this.#phase = 'grace'"],
  ]),
]
