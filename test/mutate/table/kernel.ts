// The parts that the kernel runs: the eBPF programs, the rules of nftables, and the native parts.

import { inFile, type Mutation } from '../mutation.ts'

const EBPF = ['test/contract/ebpf.test.ts']
const NFT = ['test/contract/nftables.test.ts']
const IDLE = ['test/kernel/ebpf/ebpf-idle.test.ts', 'test/kernel/packets/flow-shares.test.ts']
const SHARES = ['test/kernel/ebpf/ebpf-shares.test.ts', ...IDLE]
const SANDBOX = ['test/kernel/exec/exec-rights.test.ts', 'test/kernel/exec/exec-ways-out.test.ts']

export const KERNEL: readonly Mutation[] = [
  ...inFile('src/datapath/ebpf/programs/packet.h', EBPF, [
    [
      '		return offset == 1 && h.protocol == IPPROTO_TCP ? READ_MALFORMED : READ_OK;',
      '		return READ_OK;',
    ],
    ['	if (room < need)', '	if (room < need - 8)'],
    [
      '		if (p->protocol == IPPROTO_ROUTING)',
      '		if (p->protocol == IPPROTO_ROUTING && head[3] != 0)',
    ],
    [
      '	       next == IPPROTO_DSTOPTS;',
      '	       next == IPPROTO_DSTOPTS || next == IPPROTO_AH;',
    ],
    ['		p->adorned = 1;\n', '\n'],
    [
      '	p->adorned = head > 20 || (h.frag_off & bpf_htons(0x3fff));',
      '	p->adorned = h.frag_off & bpf_htons(0x3fff);',
    ],
    ['total < head || total > there)', 'total < head)'],
    [
      'if (head > 20 && check_options(skb, at + 20, h.ihl - 5) != READ_OK)',
      'if (head > 24 && check_options(skb, at + 20, h.ihl - 5) != READ_OK)',
    ],
    [
      'type == bpf_htons(ETH_P_IP) ? READ_OK : READ_MALFORMED;',
      'type == bpf_htons(ETH_P_IP) ? READ_OK : READ_ARP;',
    ],
  ]),
  ...inFile('src/datapath/ebpf/programs/judge.h', EBPF, [
    [
      '.bits = p->later_fragment ? POLICY_BITS_PROTOCOL : POLICY_BITS_PORT,',
      '.bits = POLICY_BITS_PORT,',
    ],
    [
      '	if (strength(other) > strength(j->verdict)) {',
      '	if (strength(other) >= strength(j->verdict)) {',
      'equal strength means the same verdict, and both rules lead to it',
    ],
    ['	if (class != CLASS_HOST)', '	if (class == CLASS_HOST)'],
    ['if (pass == PASS || (p->protocol == IPPROTO_TCP', 'if ((p->protocol == IPPROTO_TCP'],
    ['	if (!(e->flags & ENDPOINT_ENFORCING)) {', '	if (e->flags & ENDPOINT_ENFORCING) {'],
    ['		j->verdict = j->rule = 0;', '		j->verdict = POLICY_AUDIT;'],
  ]),
  ...inFile(
    'src/datapath/ebpf/programs/judge.h',
    ['test/kernel/ebpf/ebpf-fences.test.ts'],
    [
      [
        'return whose.class != CLASS_ENDPOINT && whose.class != CLASS_HOST;',
        'return whose.class != CLASS_HOST;',
      ],
    ],
  ),
  ...inFile('src/datapath/ebpf/programs/conn.h', EBPF, [
    ['	if (p->protocol == IPPROTO_TCP && is_opening(p))\n', '	if (0)\n'],
    ['			return c->began == BEGAN_PEER;', '			return 1;'],
    ['	if (!c || c->began != BEGAN_PEER)', '	if (!c)'],
  ]),
  ...inFile('src/datapath/ebpf/programs/conn.h', IDLE, [
    ['	return bpf_ktime_get_ns() - c->seen < limit;', '	return limit > 0;'],
    ['#define REPLY_IDLE (180 * SECOND)', '#define REPLY_IDLE (360 * SECOND)'],
  ]),
  ...inFile('src/datapath/ebpf/programs/share.h', SHARES, [
    [
      'if (!config || used >= (__s64)config->connections_per_endpoint)',
      'if (!config || used > (__s64)config->connections_per_endpoint)',
    ],
    [
      'return used < (__s64)config->reserved || used < (__s64)config->pool',
      'return used < (__s64)config->pool',
    ],
    [
      'used < (__s64)config->pool - share_used(0, 0, table);',
      'used < (__s64)config->pool - (share_used(0, 0, table) >> 8);',
    ],
  ]),
  ...inFile(
    'src/intercept/rules.ts',
    ['test/kernel/intercept/intercept-rules.test.ts'],
    [
      ["plan.redirect !== undefined && before.trim() === ''", 'plan.redirect !== undefined'],
      ['if (isFirst) forget()', ''],
      [
        "if (isThere) await mustRun(this.#run, 'nft', ['-f', '-'], emptyScript(there))",
        "if (isThere) await mustRun(this.#run, 'nft', ['-f', '-'], removeScript(there))",
      ],
    ],
  ),
  ...inFile('src/datapath/ebpf/programs/intercept.h', EBPF, [
    [
      '	return i && (i->families & family_bit(p)) && !is_bridged(skb, i);',
      '	return i && !is_bridged(skb, i);',
    ],
    ['		if (mac[n] != i->mac[n])', '		if (n > 4 && mac[n] != i->mac[n])'],
    ['p->adorned || p->tagged || is_group(p)', 'p->tagged || is_group(p)'],
    ['p->adorned || p->tagged || is_group(p)', 'p->adorned || p->tagged'],
    ['	if (p->adorned)\n		return 0;\n', '\n'],
    [
      '	return port == bpf_htons(DNS_PORT) && !p->later_fragment &&',
      '	return port == bpf_htons(DNS_PORT) &&',
      'ports of a later fragment are not read, so they are 0',
    ],
  ]),
  ...inFile('src/datapath/nftables/rules/rules.ts', NFT, [
    ['[...is(TCP), ...isSyn, goTo(ported)]', '[...is(TCP), ...isSyn]'],
    [
      'return payload(NETWORK_HEADER, family === 4 ? 9 : 6, 1, into)',
      'return meta(META.l4proto, into)',
    ],
    ['compare(0, EQUAL, Uint8Array.of(0x45))]', 'compare(0, NOT_EQUAL, Uint8Array.of(0))]'],
    ['    lacks(`sources${family}`, 0),', '    contains(`sources${family}`, 0),'],
    ['  compare(0, EQUAL, Uint8Array.of(1)),\n  ct(CT.labels, 0),', '  ct(CT.labels, 0),'],
    ['    mask(0, 0, Uint8Array.of(0x17)),', '    mask(0, 0, Uint8Array.of(0x07)),'],
    ['const DNS_PORT = Uint8Array.of(0, 53)', 'const DNS_PORT = Uint8Array.of(0, 54)'],
  ]),
  ...inFile(
    'src/datapath/nftables/rules/rules.ts',
    ['test/kernel/nftables/nftables.test.ts'],
    [
      [
        "    { chain: fenced, expressions: [count('drop_no_endpoint'), verdict('drop')] },",
        "    { chain: fenced, expressions: [count('drop_no_endpoint'), verdict('accept')] },",
      ],
      [
        '    [HOST, ENDPOINT_CLASS].map((addressClass) => ({',
        '    [HOST].map((addressClass) => ({',
      ],
    ],
  ),
  ...inFile('src/datapath/nftables/rules/rules-judge.ts', NFT, [
    [
      "    identify(family, 'exact', true, side),\n    identify(family, 'ranges', true, side),",
      "    identify(family, 'exact', true, side),",
    ],
    ['      ...[9, 7, 5].flatMap((key, i) => [', '      ...[9, 7, 7].flatMap((key, i) => ['],
  ]),
  ...inFile(
    'src/datapath/nftables/rules/rules-judge.ts',
    ['test/kernel/nftables/nftables-repair.test.ts'],
    [['  return [...judged, closed]', '  return judged']],
  ),
  ...inFile('src/datapath/nftables/rules/rules-end.ts', NFT, [
    [
      '    mask(0, 0, Uint8Array.of(0x02)),\n    compare(0, NOT_EQUAL',
      '    mask(0, 0, Uint8Array.of(0x01)),\n    compare(0, NOT_EQUAL',
    ],
    [
      "    { chain, expressions: [...endpoint(side, 0), contains('audited', 0), goTo('audit')] },",
      "    { chain, expressions: [...endpoint(side, 0), goTo('audit')] },",
    ],
  ]),
  ...inFile('src/datapath/nftables/rules/rules-form.ts', NFT, [
    ['        payload(TRANSPORT_HEADER, 18, 2, 0),', '        payload(TRANSPORT_HEADER, 8, 2, 0),'],
    [
      '{ chain, expressions: [extension(ROUTING, 0, 1, 0), goTo(',
      '{ chain, expressions: [extension(ROUTING, 0, 1, 0), compare(0, EQUAL, Uint8Array.of(0)), goTo(',
    ],
    [
      '      compare(0, GREATER_OR_EQUAL, Uint8Array.of(6 + i)),',
      '      compare(0, GREATER_OR_EQUAL, Uint8Array.of(7 + i)),',
    ],
  ]),
  ...inFile('src/datapath/nftables/rules/rules-link.ts', NFT, [
    [
      '    ...isOctet(NETWORK_HEADER, HOP_LIMIT_AT, 255),\n    ...isType(type),',
      '    ...isType(type),',
    ],
    ['    mask(0, 0, Uint8Array.of(0xff, 0xc0)),', '    mask(0, 0, Uint8Array.of(0xfe, 0x80)),'],
  ]),
  ...inFile(
    'src/native/udp/udp-receive.h',
    ['test/kernel/sockets/udp-native.test.ts', 'test/native/udp/udp.test.ts'],
    [
      ['	if (name->sin6_port == 0)', '	if (name->sin6_port == 1)'],
      [
        'return address != 0 && !IN_MULTICAST(address) && address != INADDR_BROADCAST;',
        'return address != 0 && !IN_MULTICAST(address);',
      ],
    ],
  ),
  ...inFile(
    'src/native/tcp/tcp-turn.h',
    ['test/native/tcp/tcp.test.ts', 'test/proxy/sockets/streams.test.ts'],
    [
      [
        '	if (got == 0 || link->hung_up) {',
        '	if (link->hung_up) {',
        'the event of the end arrives in the next turn with the same result',
      ],
    ],
  ),
  ...inFile('src/native/sandbox/filter.h', SANDBOX, [
    ['AF_INET, AF_INET6, AF_NETLINK };', 'AF_INET, AF_INET6, AF_PACKET };'],
    ['	add_refused_call(p, calls->io_uring_setup);', '	add_refused_call(p, calls->socketcall);'],
    ['	unless_equal(p, KEYS_PASTED, 1);', '	unless_equal(p, KEYS_PASTED + 1, 1);'],
  ]),
  ...inFile('src/native/sandbox/namespaces.h', SANDBOX, [
    ['		if (i >= 64 || !(kept & BIT(i)))', '		if (i >= 64)'],
  ]),
]
