// `redirectDns` redirects every query of the command to the gate, which listens on the command's own loopback. The query can be for any
// server, over UDP or TCP. An nftables table in the command's network namespace (`type nat hook output`) redirects the queries. The table
// ends with the namespace.

import { UnavailableError } from '../core/errors.ts'
import { TCP, UDP } from '../core/protocol.ts'
import { encodeChain, encodeRule, encodeTable } from '../datapath/nftables/netlink/encode-table.ts'
import {
  compare,
  EQUAL,
  META,
  meta,
  payload,
  redirect,
  TRANSPORT_HEADER,
  type Expression,
} from '../datapath/nftables/netlink/expressions.ts'
import { Message } from '../datapath/nftables/netlink/message.ts'
import { errnoName } from '../native/native.ts'
import type { NetlinkAddon } from '../native/netfilter/nftables.ts'

const TABLE = 'namegate-exec'
const CHAIN = 'dns'
/** OUTPUT is the hook's number in linux/netfilter.h. PRIORITY is lower than that of all rules that look at destinations. */
const OUTPUT = 3
const PRIORITY = -100
const DNS_PORT = Uint8Array.of(0, 53)

/** Makes the table, which is in force when the function returns. Throws UnavailableError if the kernel refuses the table. */
export function redirectDns(netlink: Pick<NetlinkAddon, 'nlOpen' | 'nlRequest' | 'nlClose'>): void {
  const batch = new Message(4096)
  batch.beginBatch()
  encodeTable(batch, TABLE)
  encodeChain(batch, TABLE, CHAIN, { type: 'nat', number: OUTPUT, priority: PRIORITY })
  let last = 0
  for (const protocol of [UDP, TCP]) last = encodeRule(batch, TABLE, CHAIN, redirected(protocol))
  batch.endBatch(last)
  const results = new Uint32Array(64)
  const fd = netlink.nlOpen(0)
  const count = netlink.nlRequest(fd, batch.octets, batch.size, results)
  netlink.nlClose(fd)
  const errno = count < 0 ? count : (results[1] ?? 0)
  if (errno === 0 && count > 0) return
  throw new UnavailableError(
    `Cannot redirect the command's queries: ${errnoName(errno)}: the kernel needs nftables with nat and redir (modprobe nft_chain_nat nft_redir)`,
  )
}

function redirected(protocol: number): readonly Expression[] {
  return [
    meta(META.l4proto, 0),
    compare(0, EQUAL, Uint8Array.of(protocol)),
    payload(TRANSPORT_HEADER, 2, 2, 0),
    compare(0, EQUAL, DNS_PORT),
    redirect(),
  ]
}
