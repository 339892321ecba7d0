// The link housekeeping of an endpoint that passes without policy: the model of src/datapath/ebpf/programs/neighbour.h.

import { ICMP6, type Packet } from './packet.ts'

const ROUTER_SOLICIT = 133
const ROUTER_ADVERT = 134
const SOLICIT = 135
const ADVERT = 136
const MULTICAST_REPORTS: readonly number[] = [131, 132, 143]

/** `isKnown`: the address has been seen on the link. */
export function isHousekeeping(packet: Packet, isKnown: (address: Uint8Array) => boolean): boolean {
  const { family, protocol, laterFragment, icmpType, source, target, hopLimit } = packet
  if (family !== 6 || protocol !== ICMP6 || laterFragment) return false
  if (MULTICAST_REPORTS.includes(icmpType)) {
    return hopLimit === 1 && isLinkMulticast(target) && (isLinkLocal(source) || isZero(source))
  }
  if (!isDiscovery(packet)) return false
  if (![ROUTER_SOLICIT, SOLICIT, ADVERT].includes(icmpType)) return false
  return isLinkMulticast(target) || isLinkLocal(target) || isKnown(target)
}

/** Addresses that a packet with hop limit 255 proves to be on the link, because no router forwards such a packet. */
export function neighboursIn(packet: Packet): readonly Uint8Array[] {
  const { icmpType, source, transport } = packet
  if (!isDiscovery(packet) || icmpType < ROUTER_ADVERT || icmpType > ADVERT) return []
  const found = [source]
  if (icmpType === ADVERT && transport.length >= 24) found.push(transport.slice(8, 24))
  return found.filter((address) => !isLinkLocal(address) && !isZero(address))
}

function isDiscovery(packet: Packet): boolean {
  const { family, protocol, laterFragment, adorned, hopLimit, icmpCode } = packet
  if (family !== 6 || protocol !== ICMP6 || laterFragment || adorned) return false
  return hopLimit === 255 && icmpCode === 0
}

function isLinkMulticast(address: Uint8Array): boolean {
  return address[0] === 0xff && address[1] === 0x02
}

function isLinkLocal(address: Uint8Array): boolean {
  return address[0] === 0xfe && ((address[1] ?? 0) & 0xc0) === 0x80
}

function isZero(address: Uint8Array): boolean {
  return address.every((octet) => octet === 0)
}
