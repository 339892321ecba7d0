// Every query that the command sends, to whatever server, over UDP or TCP, goes to the gate's listeners on its own
// loopback: a table of its own in the command's network namespace, `type nat hook output`. It ends with the namespace.

import { UnavailableError } from '../core/errors.ts'
import { TCP, UDP } from '../core/protocol.ts'
import {
  compare,
  EQUAL,
  META,
  meta,
  payload,
  redirect,
  TRANSPORT_HEADER,
  type Expression,
} from '../datapath/nftables/expressions.ts'
import { APPEND, CREATE, Message } from '../datapath/nftables/message.ts'
import { errnoName } from '../native/native.ts'
import type { NetlinkAddon } from '../native/nftables.ts'

const TABLE = 'namegate-exec'
const CHAIN = 'dns'
/** Numbers of linux/netfilter/nf_tables.h and linux/netfilter.h. */
const NEW_TABLE = 0
const NEW_CHAIN = 3
const NEW_RULE = 6
const OUTPUT = 3
const PRIORITY = -100
const ACCEPT = 1
const DNS_PORT = Uint8Array.of(0, 53)

/** In force when it returns; throws UnavailableError. */
export function redirectDns(netlink: Pick<NetlinkAddon, 'nlOpen' | 'nlRequest' | 'nlClose'>): void {
  const batch = new Message(4096)
  batch.beginBatch()
  batch.begin(NEW_TABLE, CREATE)
  batch.text(1, TABLE)
  batch.end()
  encodeChain(batch)
  let last = 0
  for (const protocol of [UDP, TCP]) last = encodeRule(batch, redirected(protocol))
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

function encodeChain(to: Message): void {
  to.begin(NEW_CHAIN, CREATE)
  to.text(1, TABLE)
  to.text(3, CHAIN)
  const hook = to.open(4)
  to.u32(1, OUTPUT)
  to.u32(2, PRIORITY >>> 0)
  to.close(hook)
  to.u32(5, ACCEPT)
  to.text(7, 'nat')
  to.end()
}

/** Returns where the message begins. */
function encodeRule(to: Message, expressions: readonly Expression[]): number {
  const at = to.begin(NEW_RULE, CREATE | APPEND)
  to.text(1, TABLE)
  to.text(2, CHAIN)
  const list = to.open(4)
  for (const each of expressions) each(to)
  to.close(list)
  to.end()
  return at
}
