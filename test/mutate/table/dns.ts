// Reading messages: which octets are a question, a reply to it, and an address that it teaches.

import { inFile, type Mutation } from '../mutation.ts'

const WIRE = [
  'test/dns/wire.test.ts',
  'test/dns/query.test.ts',
  'test/property/wire-mutation.test.ts',
]
const QUERY = ['test/dns/query.test.ts', 'test/dns/query-status.test.ts']
const MATCH = ['test/dns/match.test.ts', 'test/proxy/upstream/upstream-replies.test.ts']
const ANSWER = [
  'test/dns/answer-silent.test.ts',
  'test/dns/answer-teaching.test.ts',
  'test/dns/answer.test.ts',
  'test/dns/chain.test.ts',
]

export const DNS: readonly Mutation[] = [
  ...inFile('src/dns/wire.ts', WIRE, [
    ['target < start + HEADER_OCTETS || target >= part', 'target < start || target >= part'],
    ['|| target >= part ? FAULT_POINTER', '|| target > part ? FAULT_POINTER'],
    ['if (octet < 0xc0) return FAULT_LABEL', 'if (octet < 0x80) return FAULT_LABEL'],
    [
      'const target = start + (((octet & 0x3f) << 8)',
      'const target = start + (((octet & 0x1f) << 8)',
    ],
    ['if (length + octet + 1 >= NAME_OCTETS_MAX)', 'if (length + octet + 1 > NAME_OCTETS_MAX)'],
    [
      'if (length > NAME_OCTETS_MAX) return FAULT_LENGTH',
      'if (length > 2 * NAME_OCTETS_MAX) return FAULT_LENGTH',
    ],
    [
      'return next + 4 > end ? FAULT_BOUNDS : next + 4',
      'return next + 4 > end + 1 ? FAULT_BOUNDS : next + 4',
    ],
    [
      'octet >= 0x41 && octet <= 0x5a ? octet + 32 : octet',
      'octet >= 0x41 && octet < 0x5a ? octet + 32 : octet',
    ],
  ]),
  ...inFile('src/dns/query.ts', QUERY, [
    ['if ((flags & FLAG_QR) !== 0) return', 'if ((flags & FLAG_QR) === 1) return'],
    ['} else if (questions > 1) {', '} else if (questions > 2) {'],
    ['this.#walk(buf, offset, end) !== end', 'this.#walk(buf, offset, end) > end'],
    [
      'if (next - at !== this.nameLength) this.#malformed = true',
      'if (next - at > this.nameLength) this.#malformed = true',
      'a pointer in the first name has no valid target, so every readable name is as long as its octets',
    ],
    [
      'if (!additional || this.hasOpt || buf[at] !== 0) this.#malformed = true',
      'if (!additional || buf[at] !== 0) this.#malformed = true',
    ],
    [
      'const letter = octet >= 0x61 && octet <= 0x7a',
      'const letter = octet >= 0x60 && octet <= 0x7a',
    ],
    [
      'this.udpSize = Math.max(UDP_SIZE_MIN, u16(buf, fixed + 2))',
      'this.udpSize = u16(buf, fixed + 2)',
    ],
  ]),
  ...inFile('src/dns/match.ts', MATCH, [
    [
      'if (u16(octets, offset + 4) !== 1) return false',
      'if (u16(octets, offset + 4) < 1) return false',
    ],
    [
      'if (octets[offset + i] !== query.octets[query.offset + i]) return false',
      'if (i > 20 && octets[offset + i] !== query.octets[query.offset + i]) return false',
    ],
    [
      'return rcode !== RCODE_NOERROR && rcode !== RCODE_NXDOMAIN',
      'return rcode !== RCODE_NOERROR',
    ],
    [
      'return u16(octets, at + size) === question.qtype && u16(octets, at + size + 2) === question.qclass',
      'return u16(octets, at + size) === question.qtype',
    ],
    [
      'if (questions !== 1 || length < HEADER_OCTETS + size + 4) return false',
      'if (length < HEADER_OCTETS + size + 4) return false',
    ],
  ]),
  ...inFile('src/dns/answer.ts', ANSWER, [
    ['      this.rcode === RCODE_NOERROR &&', '      this.rcode >= RCODE_NOERROR &&'],
    ['      question.qclass === CLASS_IN &&', '      question.qclass >= CLASS_IN &&'],
    ["if (this.chainFault !== 'none') return", "if (this.chainFault === 'loop') return"],
    ['if (owner < 0) continue', 'if (owner < -1) continue'],
    ['const ttl = Math.min(chain.ttls[owner]!, records.ttls[i]!)', 'const ttl = records.ttls[i]!'],
    [
      'if (type === TYPE_OPT) this.rcode |= buf[fixed + 4]! << 4',
      'if (type === TYPE_OPT && !answer) this.rcode |= buf[fixed + 4]! << 4',
    ],
    ['        return next - data === 16', '        return next - data >= 16'],
  ]),
  ...inFile('src/dns/chain.ts', ANSWER.toReversed(), [
    [
      "if (this.count > CHAIN_LINKS_MAX) return 'long'",
      "if (this.count >= CHAIN_LINKS_MAX) return 'long'",
    ],
    ["if (links > 1) return 'fork'", "if (links > 2) return 'fork'"],
    [
      'this.ttls[i] = buf[fixed + 4]! > 0x7f ? 0 : u32(buf, fixed + 4)',
      'this.ttls[i] = u32(buf, fixed + 4)',
    ],
    [
      'const ttl = Math.min(this.ttls[this.count - 1]!, this.#linkTtl)',
      'const ttl = this.#linkTtl',
    ],
    [
      'if (!sameName(this.#names, i * NAME_OCTETS_MAX, this.#scratch)) return false',
      'if (this.#names.length === 0) return false',
    ],
  ]),
]
