// This file makes text for people: names of types, classes, RCODEs and Extended DNS Errors, and RDATA in presentation format
// (RFC 1035 5.1; RFC 3597 5 for unknown types). It is not used on the packet path. Octets that a terminal can interpret are written
// as \DDD.

import { nearest } from '../core/did-you-mean.ts'
import { formatAddress } from '../core/ip.ts'
import { formatName, NAME_OCTETS_MAX } from '../core/name.ts'
import { CLASS_IN, TYPE_A, TYPE_AAAA, TYPE_CNAME } from './codes.ts'
import { readName, u16, u32 } from './wire.ts'

/** The IANA numbers of types that people ask for. */
const TYPES: Readonly<Record<string, number>> = {
  A: TYPE_A,
  NS: 2,
  CNAME: TYPE_CNAME,
  SOA: 6,
  PTR: 12,
  HINFO: 13,
  MX: 15,
  TXT: 16,
  AAAA: TYPE_AAAA,
  SRV: 33,
  NAPTR: 35,
  DNAME: 39,
  OPT: 41,
  DS: 43,
  SSHFP: 44,
  RRSIG: 46,
  NSEC: 47,
  DNSKEY: 48,
  NSEC3: 50,
  TLSA: 52,
  CDS: 59,
  CDNSKEY: 60,
  SVCB: 64,
  HTTPS: 65,
  SPF: 99,
  TSIG: 250,
  IXFR: 251,
  AXFR: 252,
  ANY: 255,
  URI: 256,
  CAA: 257,
}
const CLASSES: Readonly<Record<string, number>> = {
  IN: CLASS_IN,
  CH: 3,
  HS: 4,
  NONE: 254,
  ANY: 255,
}
const RCODES = [
  'NOERROR',
  'FORMERR',
  'SERVFAIL',
  'NXDOMAIN',
  'NOTIMP',
  'REFUSED',
  'YXDOMAIN',
  'YXRRSET',
  'NXRRSET',
  'NOTAUTH',
  'NOTZONE',
] as const
const OPCODES: Readonly<Record<number, string>> = {
  0: 'QUERY',
  1: 'IQUERY',
  2: 'STATUS',
  4: 'NOTIFY',
  5: 'UPDATE',
  6: 'DSO',
}
/** The names of Extended DNS Errors by number (RFC 8914 4). */
const EXTENDED_ERRORS = [
  'Other',
  'Unsupported DNSKEY Algorithm',
  'Unsupported DS Digest Type',
  'Stale Answer',
  'Forged Answer',
  'DNSSEC Indeterminate',
  'DNSSEC Bogus',
  'Signature Expired',
  'Signature Not Yet Valid',
  'DNSKEY Missing',
  'RRSIGs Missing',
  'No Zone Key Bit Set',
  'NSEC Missing',
  'Cached Error',
  'Not Ready',
  'Blocked',
  'Censored',
  'Filtered',
  'Prohibited',
  'Stale NXDOMAIN Answer',
  'Not Authoritative',
  'Not Supported',
  'No Reachable Authority',
  'Network Error',
  'Invalid Data',
] as const

/** Returns the number of a type such as `A`, `https` or `TYPE65280`; undefined if the text is no type. */
export function parseType(text: string): number | undefined {
  const upper = text.toUpperCase()
  const known = Object.hasOwn(TYPES, upper) ? TYPES[upper] : undefined
  if (known !== undefined) return known
  const number = /^TYPE(\d{1,5})$/.exec(upper)?.[1]
  return number !== undefined && Number(number) <= 0xffff ? Number(number) : undefined
}

/** Returns `; did you mean AAAA?` for a text that resembles a type, else an empty text. */
export function nearestType(text: string): string {
  const meant = nearest(text, Object.keys(TYPES))
  return meant === undefined ? '' : `; did you mean ${meant}?`
}

export function formatType(type: number): string {
  return nameOf(TYPES, type) ?? `TYPE${type}`
}

export function formatClass(qclass: number): string {
  return nameOf(CLASSES, qclass) ?? `CLASS${qclass}`
}

export function formatRcode(rcode: number): string {
  return rcode === 16 ? 'BADVERS' : (RCODES[rcode] ?? `RCODE${rcode}`)
}

export function formatOpcode(opcode: number): string {
  return OPCODES[opcode] ?? `OPCODE${opcode}`
}

export function formatExtendedError(code: number): string {
  return EXTENDED_ERRORS[code] ?? `Code ${code}`
}

function nameOf(table: Readonly<Record<string, number>>, value: number): string | undefined {
  return Object.keys(table).find((name) => table[name] === value)
}

/** Formats a name with a final dot, as in a zone file. */
export function formatAbsolute(name: Uint8Array): string {
  const text = formatName(name)
  return text === '.' ? text : `${text}.`
}

/** Formats octets as a character string in quotes (RFC 1035 5.1). */
export function formatText(octets: Uint8Array): string {
  let text = ''
  for (const octet of octets) {
    if (octet === 0x22 || octet === 0x5c) text += `\\${String.fromCharCode(octet)}`
    else if (octet >= 0x20 && octet <= 0x7e) text += String.fromCharCode(octet)
    else text += `\\${String(octet).padStart(3, '0')}`
  }
  return `"${text}"`
}

/** Formats octets as `\# LENGTH HEX` (RFC 3597 5). */
export function formatUnknown(octets: Uint8Array): string {
  const hex = Buffer.from(octets).toString('hex')
  return hex === '' ? '\\# 0' : `\\# ${octets.length} ${hex}`
}

/** RDATA at buf[at..next) of a record with type `type`, in the message buf[start..end). */
export interface RecordData {
  readonly buf: Uint8Array
  readonly start: number
  readonly end: number
  readonly type: number
  readonly at: number
  readonly next: number
}

/**
 * Returns RDATA as text, for types whose RDATA is an address, text, or numbers followed by names that can be compressed.
 * Returns undefined for other types, and for RDATA that does not fit its type.
 */
export function formatRdata(data: RecordData): string | undefined {
  const { buf, type, at, next } = data
  const size = next - at
  switch (formatType(type)) {
    case 'A':
      return size === 4 ? formatAddress(4, buf, at) : undefined
    case 'AAAA':
      return size === 16 ? formatAddress(6, buf, at) : undefined
    case 'NS':
    case 'CNAME':
    case 'PTR':
    case 'DNAME':
      return numbersAndName(data, 0)
    case 'MX':
      return numbersAndName(data, 1)
    case 'SRV':
      return numbersAndName(data, 3)
    case 'SOA':
      return formatSoa(data)
    case 'TXT':
    case 'SPF':
      return formatStrings(buf, at, next)
    case 'CAA':
      return formatCaa(buf.subarray(at, next))
    default:
      return undefined
  }
}

/** Formats `count` numbers of 16 bits, followed by a name that ends where the RDATA ends. */
function numbersAndName(
  { buf, start, end, at, next }: RecordData,
  count: number,
): string | undefined {
  const name = new Uint8Array(NAME_OCTETS_MAX)
  if (readName(buf, start, end, at + count * 2, name) !== next) return undefined
  let text = ''
  for (let i = 0; i < count; i++) text += `${u16(buf, at + i * 2)} `
  return text + formatAbsolute(name)
}

/** Formats two names and five numbers of 32 bits (RFC 1035 3.3.13). */
function formatSoa({ buf, start, end, at, next }: RecordData): string | undefined {
  const server = new Uint8Array(NAME_OCTETS_MAX)
  const mailbox = new Uint8Array(NAME_OCTETS_MAX)
  const second = readName(buf, start, end, at, server)
  if (second < 0 || second > next) return undefined
  const numbers = readName(buf, start, end, second, mailbox)
  if (numbers < 0 || numbers + 20 !== next) return undefined
  let text = `${formatAbsolute(server)} ${formatAbsolute(mailbox)}`
  for (let i = numbers; i < next; i += 4) text += ` ${u32(buf, i)}`
  return text
}

/** Formats flags, a tag of letters and digits, and a value (RFC 8659 4.1). */
function formatCaa(data: Uint8Array): string | undefined {
  const [flags = 0, length = 0] = data
  const tag = String.fromCharCode(...data.subarray(2, 2 + length))
  if (tag.length !== length || !/^[A-Za-z0-9]+$/.test(tag)) return undefined
  return `${flags} ${tag} ${formatText(data.subarray(2 + length))}`
}

function formatStrings(buf: Uint8Array, at: number, next: number): string | undefined {
  const parts: string[] = []
  while (at < next) {
    const behind = at + 1 + buf[at]!
    if (behind > next) return undefined
    parts.push(formatText(buf.subarray(at + 1, behind)))
    at = behind
  }
  return parts.length === 0 ? undefined : parts.join(' ')
}
