// Accepting answers, holding them, and finding the client.

import { inFile, type Mutation } from '../mutation.ts'

const HOLD = [
  'test/proxy/pipeline/release-queue.test.ts',
  'test/property/hold.test.ts',
  'test/scenarios/scenarios.test.ts',
]
const REPLIES = [
  'test/proxy/upstream/upstream-replies.test.ts',
  'test/proxy/upstream/upstream.test.ts',
]
const UNKNOWN = ['test/proxy/pipeline/unknown-clients.test.ts', 'test/scenarios/scenarios.test.ts']

export const PROXY: readonly Mutation[] = [
  ...inFile(
    'src/proxy/server/listeners.ts',
    ['test/kernel/daemon/up-running.test.ts'],
    [['      this.reading(false)\n', '']],
  ),
  ...inFile('src/proxy/upstream/upstream.ts', REPLIES, [
    [
      'wait >= 0 && this.#view.accept(this.inFlight, slot, message)',
      'wait >= 0 && message.length >= 12',
    ],
    ['if (wait >= 0) this.attempts.repeatOverTcp(wait)', 'if (wait >= 0) return'],
    ['    if (socket.guessed()) this.attempts.mistrust(socket)\n', ''],
    [
      'if (length < HEADER_OCTETS || (u16(octets, offset + 2) & FLAG_QR) === 0) return false',
      'if (length < HEADER_OCTETS) return false',
    ],
    ['else if (!socket.overTcp) this', 'else if (socket.overTcp) this'],
  ]),

  ...inFile(
    'src/proxy/pipeline/settle.ts',
    ['test/scenarios/scenarios.test.ts'],
    [
      [
        'inFlight.endpoints[slot] === UNMANAGED && clients.of(inFlight, slot) === undefined',
        'inFlight.endpoints[slot] === UNMANAGED',
      ],
    ],
  ),
  ...inFile('src/proxy/upstream/attempts.ts', REPLIES, [
    ['    for (const wait of doubted) this.#endWait(wait, true)\n', ''],
    [
      '      if (!waits.isWaiting(slot)) this.#next(slot, now)\n    }\n  }\n\n  /** Handles the failure',
      '    }\n  }\n\n  /** Handles the failure',
    ],
  ]),
  ...inFile('src/proxy/upstream/waits.ts', REPLIES, [
    [
      'if (this.#inFlight.questionHashes[slot] !== hash) continue',
      'if (this.#inFlight.questionHashes[slot] === hash) continue',
    ],
  ]),
  ...inFile('src/proxy/pipeline/release-queue.ts', HOLD, [
    [
      'this.#needed[slot] = isPending ? this.#options.committer.desired : 0',
      'this.#needed[slot] = isPending ? this.#options.committer.revision : 0',
    ],
    ['if (isNext && this.#needed[at]! <= inForce) this.#add(at)', 'if (isNext) this.#add(at)'],
    [
      'if (isNext && this.#needed[at]! <= inForce)',
      'if (this.#needed[at]! <= inForce)',
      'settling an answer that waits after another one holds it again for its turn; the check only saves work',
    ],
    [
      'const inForce = committer.isUnderWay ? committer.revision : Infinity',
      'const inForce = Infinity',
    ],
    ['this.#since[at]! + limitMs <= now', 'this.#since[at]! + 2 * limitMs <= now'],
    ['    this.#settle(true)\n    if (this.count', '    this.#settle(false)\n    if (this.count'],
  ]),
  ...inFile('src/proxy/pipeline/unknown-clients.ts', UNKNOWN, [
    [
      'if (this.#lengths[row] === 0 || !isKnown(this.#clients, row)) continue',
      'if (this.#lengths[row] === 0) continue',
    ],
    [
      "if (entry < 0) return this.#refused('refusedClientFull')",
      "if (entry < -1) return this.#refused('refusedClientFull')",
    ],
    [
      "if (length > WAITING_OCTETS_MAX) return this.#refused('refusedLong')",
      "if (length > 2 * WAITING_OCTETS_MAX) return this.#refused('refusedLong')",
    ],
    [
      "if (this.#end - this.#oldest === WAITING_MAX) return this.#refused('refusedFull')",
      "if (this.#end - this.#oldest === WAITING_MAX + 1) return this.#refused('refusedFull')",
    ],
  ]),
  ...inFile(
    'src/proxy/pipeline/client-endpoints.ts',
    ['test/proxy/pipeline/client-endpoints.test.ts', 'test/kernel/policy/attribution.test.ts'],
    [
      [
        "if (ifindex === 0 || hook.kind === 'none') return true",
        "if (hook.kind !== 'cgroup') return true",
      ],
      [
        "if (hook.kind === 'cgroup') return ifindex === LOOPBACK",
        "if (hook.kind === 'cgroup') return true",
      ],
      [
        "if (hook.side === 'egress' && ifindex === LOOPBACK) return true",
        'if (ifindex === LOOPBACK) return true',
      ],
      [
        'if (age < FRESH_EPOCHS && isAt(place, ifindex)) return true',
        'if (isAt(place, ifindex)) return true',
      ],
    ],
  ),
  ...inFile(
    'src/proxy/pipeline/judge.ts',
    ['test/kernel/intercept/original-destination.test.ts'],
    [
      [
        'if (this.isUntrusted(clients, row)) return SERVER_UNTRUSTED',
        'this.isUntrusted(clients, row)',
      ],
      [
        "return this.#serverOf(clients, row)?.kind !== 'untrusted'",
        "return this.#serverOf(clients, row)?.kind !== 'pool'",
      ],
    ],
  ),
  ...inFile(
    'src/enforcement/dns-verdicts.ts',
    ['test/enforcement/dns-verdicts.test.ts'],
    [
      [
        "if (permission.kind === 'no-name') return NAME_DENIED",
        "if (permission.kind === 'no-name') return MAY_ASK",
      ],
      [
        "if (permission.kind === 'not-admitted') return SERVER_DENIED",
        "if (permission.kind === 'not-admitted') return NAME_DENIED",
      ],
      [
        'if (permission.numbers.has(items[i]!)) return MAY_ASK',
        'if (!permission.numbers.has(items[i]! + 1)) return MAY_ASK',
      ],
      ['if (asker === undefined) return SERVER_DENIED', 'if (asker === undefined) return MAY_ASK'],
    ],
  ),
]
