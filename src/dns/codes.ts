// This file has the numbers of the DNS protocol that namegate uses, and the contents of the local answers of docs/spec/semantics 4.
// The contents are encoded once, so the packet path only copies octets. The texts are short and do not name rules (RFC 8914 4).

/** RCODEs (RFC 1035 4.1.1, RFC 6895 2.3). */
export const RCODE_NOERROR = 0
export const RCODE_FORMERR = 1
export const RCODE_SERVFAIL = 2
export const RCODE_NXDOMAIN = 3
export const RCODE_NOTIMP = 4
export const RCODE_REFUSED = 5
/** RFC 6891 9. The upper 8 of the 12 bits are in the OPT record. */
export const RCODE_BADVERS = 16

/** The 16 bits after the id (RFC 1035 4.1.1, RFC 4035 3.1.6, 3.2). */
export const FLAG_QR = 0x8000
export const MASK_OPCODE = 0x7800
export const FLAG_AA = 0x0400
export const FLAG_TC = 0x0200
export const FLAG_RD = 0x0100
export const FLAG_RA = 0x0080
export const FLAG_AD = 0x0020
export const FLAG_CD = 0x0010
export const MASK_RCODE = 0x000f

export const TYPE_A = 1
export const TYPE_CNAME = 5
export const TYPE_AAAA = 28
export const TYPE_OPT = 41
/** RFC 9460 14.1, 14.2. */
export const TYPE_SVCB = 64
export const TYPE_HTTPS = 65
export const CLASS_IN = 1

/** EDNS options (RFC 7873 4, RFC 8914 2). */
export const OPTION_COOKIE = 10
export const OPTION_EDE = 15
/** The DO bit in the lower half of the OPT record's TTL (RFC 3225 3). */
export const EDNS_DO = 0x8000
/** The UDP size that local answers advertise: a message of this size is not fragmented on usual paths (RFC 9715). */
export const OWN_UDP_SIZE = 1232

/** Extended DNS Errors (RFC 8914 4). */
export const EDE_OTHER = 0
export const EDE_NOT_READY = 14
export const EDE_BLOCKED = 15
export const EDE_PROHIBITED = 18
export const EDE_NO_REACHABLE_AUTHORITY = 22
export const EDE_NETWORK_ERROR = 23
export const EDE_INVALID_DATA = 24

/** Length of the longest EDE text in octets. Header, longest question, OPT and this text fit in 512 octets. */
export const EDE_TEXT_MAX = 200

/** The contents of a local answer. `ede` is undefined if docs/spec/semantics 4 names no EDE for it. */
export interface LocalAnswer {
  readonly rcode: number
  readonly ede: number | undefined
  /** UTF-8, at most `EDE_TEXT_MAX` octets. */
  readonly text: Uint8Array
}

function mkLocalAnswer(rcode: number, ede?: number, text = ''): LocalAnswer {
  return { rcode, ede, text: new TextEncoder().encode(text) }
}

const SOURCES_SILENT_TEXT = 'where policies come from is silent for too long'

/** The table in docs/spec/semantics 4, one value per row. A denied name has one value per `deny-response`, except for `drop`. */
export const LOCAL = {
  deniedRefused: mkLocalAnswer(RCODE_REFUSED, EDE_BLOCKED),
  deniedNxdomain: mkLocalAnswer(RCODE_NXDOMAIN, EDE_BLOCKED),
  deniedNodata: mkLocalAnswer(RCODE_NOERROR, EDE_BLOCKED),
  closedRefused: mkLocalAnswer(RCODE_REFUSED, EDE_BLOCKED, SOURCES_SILENT_TEXT),
  closedNxdomain: mkLocalAnswer(RCODE_NXDOMAIN, EDE_BLOCKED, SOURCES_SILENT_TEXT),
  closedNodata: mkLocalAnswer(RCODE_NOERROR, EDE_BLOCKED, SOURCES_SILENT_TEXT),
  serverProhibited: mkLocalAnswer(RCODE_REFUSED, EDE_PROHIBITED),
  clientUnknown: mkLocalAnswer(RCODE_REFUSED, EDE_PROHIBITED),
  notReady: mkLocalAnswer(RCODE_SERVFAIL, EDE_NOT_READY),
  upstreamTimeout: mkLocalAnswer(RCODE_SERVFAIL, EDE_NO_REACHABLE_AUTHORITY),
  upstreamSocket: mkLocalAnswer(RCODE_SERVFAIL, EDE_NETWORK_ERROR),
  answerMalformed: mkLocalAnswer(RCODE_SERVFAIL, EDE_INVALID_DATA),
  heldOut: mkLocalAnswer(RCODE_SERVFAIL, EDE_OTHER, 'addresses not enforced in time'),
  degraded: mkLocalAnswer(RCODE_SERVFAIL, EDE_OTHER, 'addresses not fully labelled'),
  overloaded: mkLocalAnswer(RCODE_SERVFAIL, EDE_OTHER, 'overloaded'),
  queryMalformed: mkLocalAnswer(RCODE_FORMERR),
  badVersion: mkLocalAnswer(RCODE_BADVERS),
  notImplemented: mkLocalAnswer(RCODE_NOTIMP),
  /** Answers a query of the self-check (proxy/self-check.ts). */
  alive: mkLocalAnswer(RCODE_NOERROR),
} as const
